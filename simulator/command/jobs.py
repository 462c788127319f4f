"""How the workloads of a stack fare: tests until they have ended, trainings and services until they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from diagnosis.cluster import Cluster, Kind
from diagnosis.finding import wrapped
from diagnosis.owners import makers_of, pods_of
from diagnosis.phases import RUNNING
from diagnosis.report import BAD, DONE, Report, report
from k8s.objects import Object
from simulator.kube.client import ApiError, KubeClient, NoKindMatch
from simulator.kubelet import placements
from simulator.kubelet.status import FAKED

_PUSH = "make images"
_BAD_REQUEST = 400
_TYPES = {"appwrapper": "AppWrapper", "pytorchjob": "PyTorchJob", "rayjob": "RayJob"}
"""What types of Pulumi end with, by kinds as kubectl calls them; those of others end with Job."""


@dataclass(frozen=True)
class Workload:
    """A workload as the stack's output `workloads` names it, and what the cluster says of it."""

    name: str
    namespace: str
    command: str
    """Shows its log, or the way in."""
    why: str
    """Tells what it waits for."""
    ends: bool
    """Whether to wait for its end, and not only for its start."""
    report: Report
    ran_on: tuple[tuple[str, str], ...] = ()
    """Pods and their nodes."""
    faked: tuple[str, ...] = ()
    """Why no process ran for its pods, or for some containers: such pods start and succeed whatever they are."""

    @property
    def phase(self) -> str:
        """What is faked is told as such wherever it would look like success."""
        phase = self.report.phase
        if not self.faked or phase not in (*DONE, RUNNING):
            return phase
        whole = any(why.startswith(f"{FAKED}:") for why in self.faked)
        return f"{phase} ({'faked: nothing ran' if whole else 'partly faked'})"

    @property
    def failed(self) -> bool:
        return self.report.phase in BAD

    @property
    def passed(self) -> bool:
        """Whether it is as it should be, and really ran."""
        return self.settled and not self.failed and not self.faked

    @property
    def stuck(self) -> bool:
        """Whether it waits for what no time brings."""
        return any(finding.lasts for finding in self.report.findings)

    @property
    def settled(self) -> bool:
        phase = self.report.phase
        return self.failed or phase in DONE or (phase == RUNNING and not self.ends)

    def head(self) -> list[str]:
        """How it fares."""
        return replace(self.report, phase=self.phase).head()

    def complaint(self, stack: str) -> str:
        """What to tell of one of the stack's that is not as it should be, and what to do."""
        causes = [line for finding in self.report.findings for line in finding.lines()]
        faked = [line for why in self.faked for line in wrapped(f"  {why}", "    ")]
        told = [*self.head(), *causes, *faked]
        told.append(f"  look at it:   {self.command if self.failed or self.faked else self.why}")
        if self.failed or self.faked:
            told.append(f"  run it again: {self._again(stack)}")
        return "\n".join(told)

    def _again(self, stack: str) -> str:
        """The command that makes it anew: of what is gone, Pulumi has to learn that first."""
        if not self.report.kind:
            return f"pulumi up -s {stack} --refresh"
        if self.report.kind == "deployment":
            return f"kubectl rollout restart -n {self.namespace} deployment {self.report.name}"
        return f"pulumi up -s {stack} --replace '**:{_TYPES.get(self.report.kind, 'Job')}::{self.name}'"


def observe(kube: KubeClient, outputs: Mapping[str, Mapping[str, Any]], ran: Path) -> list[Workload]:
    """`outputs` is the stack's `workloadDetails`; `ran` the kubelet's record of placements."""
    cluster, placed = look(kube), placements.load(ran)
    found = []
    for name, output in sorted(outputs.items()):
        told = report(cluster, output["namespace"], output["name"], _PUSH)
        makers = makers_of(cluster, output["namespace"], told.uid)
        pods = [pod for pod in placed if pod["job_uid"] in makers]
        ran_on = sorted((pod["pod"], pod["node"]) for pod in pods)
        live = (placements.why_faked(pod) for pod in pods_of(cluster, output["namespace"], told.uid))
        faked = {why for why in (*live, *(pod.get("why_faked", "") for pod in pods)) if why}
        given = (output["namespace"], output["command"], output["why"], output["ends"])
        found.append(Workload(name, *given, told, tuple(ran_on), tuple(sorted(faked))))
    return found


def look(kube: KubeClient) -> Cluster:
    """The cluster as it is now."""
    return Cluster(lambda kind, namespace: _read(kube, kind, namespace))


def judged(kube: KubeClient, workload: Workload) -> Workload:
    """With the verdicts that the logs of its pods end with. Raises ApiError for logs that cannot be read."""
    last = []
    for pod, _ in workload.ran_on:
        try:
            last.append(kube.text(f"/api/v1/namespaces/{workload.namespace}/pods/{pod}/log", {"tailLines": 1}))
        except ApiError as error:
            # Volcano removes pods of jobs that are over; of several containers one has to be named: none is a test's
            if not error.not_found and error.code != _BAD_REQUEST:
                raise
    return replace(workload, report=workload.report.judged(last))


def _read(kube: KubeClient, kind: Kind, namespace: str) -> list[Object]:
    try:
        return kube.list(kind.api_version, kind.name, namespace or None)
    except NoKindMatch:
        return []
