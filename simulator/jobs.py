"""How the workloads of a stack fare: tests until they have ended, trainings and services until they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from diagnosis.cluster import Cluster, Kind
from diagnosis.finding import wrapped
from diagnosis.report import BAD, DONE, RUNNING, Report, pods_of, report
from simulator.kube.client import ApiError, KubeClient, NoKindMatch
from simulator.kubelet import placements
from simulator.sandbox import sandbox
from simulator.sandbox.images import has_recipe

Object = dict[str, Any]
_PUSH = "make images"
_VERDICT = "VERDICT:"
_PASSED = f"{_VERDICT} PASS"
_FAKED = "faked: nothing ran"


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
    """Images of its pods that no process ran for: such pods start and succeed whatever they are."""
    verdicts: tuple[str, ...] = ()
    """The lines in which the pods of a test judge."""

    @property
    def phase(self) -> str:
        """What is faked is told as such wherever it would look like success."""
        phase = self.report.phase
        return f"{phase} ({_FAKED})" if self.faked and phase in (*DONE, RUNNING) else phase

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
        return replace(self.report, phase=self.phase, findings=()).lines()

    @property
    def complaint(self) -> str:
        """What to tell of one that is not as it should be, and what to do."""
        causes = [line for finding in self.report.findings for line in finding.lines()]
        told = [*self.head(), *causes, *self._why_faked()]
        told.append(f"  look at it:   {self.command if self.failed or self.faked else self.why}")
        if self.failed or self.faked:
            kind, name = self.report.kind, self.report.name
            gone = f"kubectl delete {kind} -n {self.namespace} {name} && " if kind else ""
            told.append(f"  run it again: {gone}pulumi up --refresh")
        return "\n".join(told)

    def _why_faked(self) -> Iterator[str]:
        for image in self.faked:
            if not has_recipe(image):
                yield from wrapped(f"  image {image} has no recipe in simulator/sandbox/recipes/", "    ")
                yield "    do: docs/simulator.md, The sandbox, says how to add one"
            elif reason := sandbox.available():
                yield from wrapped(f"  image {image} cannot run on this machine: {reason}", "    ")


def observe(kube: KubeClient, outputs: Mapping[str, Mapping[str, Any]], ran: Path) -> list[Workload]:
    """`outputs` is the stack's `workloadDetails`; `ran` the kubelet's record of placements."""
    cluster, placed = look(kube), placements.load(ran)
    found = []
    for name, output in sorted(outputs.items()):
        told = report(cluster, output["namespace"], output["name"], _PUSH)
        pods = [pod for pod in placed if pod["job_uid"] == told.uid]
        ran_on = sorted((pod["pod"], pod["node"]) for pod in pods)
        live = [placements.faked(pod) for pod in pods_of(cluster, output["namespace"], told.uid)]
        faked = {image for images in [*live, *(pod.get("faked", []) for pod in pods)] for image in images}
        given = (output["namespace"], output["command"], output["why"], output["ends"])
        found.append(Workload(name, *given, told, tuple(ran_on), tuple(sorted(faked))))
    return found


def look(kube: KubeClient) -> Cluster:
    """The cluster as it is now."""
    return Cluster(lambda kind, namespace: _read(kube, kind, namespace))


def judged(kube: KubeClient, workload: Workload) -> Workload:
    """With the verdicts that the logs of its pods end with, the failed ones first; as it is when none has any.

    Raises ApiError for logs that cannot be read.
    """
    found = []
    for pod, _ in workload.ran_on:
        try:
            last = kube.text(f"/api/v1/namespaces/{workload.namespace}/pods/{pod}/log", {"tailLines": 1})
        except ApiError as error:
            if not error.not_found:  # Volcano removes pods of jobs that are over
                raise
            continue
        if last.startswith(_VERDICT):
            found.append(last.strip())
    return replace(workload, verdicts=tuple(sorted(found, key=lambda verdict: verdict.startswith(_PASSED))))


def _read(kube: KubeClient, kind: Kind, namespace: str) -> list[Object]:
    try:
        return kube.list(kind.api_version, kind.name, namespace or None)
    except NoKindMatch:
        return []
