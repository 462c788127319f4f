"""How the workloads of a stack fare: tests until they have ended, trainings and services until they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from diagnosis.cluster import Cluster, Kind
from diagnosis.report import BAD, DONE, Report, report
from simulator.kube.client import ApiError, KubeClient, NoKindMatch
from simulator.kubelet import placements

Object = dict[str, Any]
_PUSH = "make images"
_VERDICT = "VERDICT:"
_PASSED = f"{_VERDICT} PASS"
_POLL_S = 1.0
_LASTS_S = 10.0
"""For so long something is missing before it counts as missing: a kubelet needs a few seconds to try again."""


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
    verdicts: tuple[str, ...] = ()
    """The lines in which the pods of a test judge."""

    @property
    def phase(self) -> str:
        return self.report.phase

    @property
    def failed(self) -> bool:
        return self.phase in BAD

    @property
    def stuck(self) -> bool:
        """Whether it waits for what no time brings."""
        return any(finding.lasts for finding in self.report.findings)

    @property
    def settled(self) -> bool:
        return self.failed or self.phase in DONE or (self.phase == "Running" and not self.ends)

    @property
    def complaint(self) -> str:
        """What to tell of one that is not as it should be, and what to do."""
        told = self.report.lines()
        told.append(f"  look at it:   {self.command if self.failed else self.why}")
        if self.failed:
            kind, name = self.report.kind, self.report.name
            gone = f"kubectl delete {kind} -n {self.namespace} {name} && " if kind else ""
            told.append(f"  run it again: {gone}pulumi up --refresh")
        return "\n".join(told)


def observe(kube: KubeClient, outputs: Mapping[str, Mapping[str, Any]], ran: Path) -> list[Workload]:
    """`outputs` is the stack's `workloads`; `ran` the kubelet's record of placements."""
    cluster, placed = Cluster(lambda kind, namespace: _read(kube, kind, namespace)), placements.load(ran)
    found = []
    for name, output in sorted(outputs.items()):
        told = report(cluster, output["namespace"], output["name"], _PUSH)
        ran_on = sorted((p["pod"], p["node"]) for p in placed if p["job_uid"] == told.uid)
        given = (output["namespace"], output["command"], output["why"], output["ends"])
        found.append(Workload(name, *given, told, tuple(ran_on)))
    return found


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


def wait(observed: Callable[[], list[Workload]], timeout_s: float, told: Callable[[str], None]) -> list[Workload]:
    """Until all have settled, one is stuck, or time is up; `told` is given each report when it changes, none twice."""
    deadline = time.monotonic() + timeout_s
    stuck_since: dict[str, float] = {}
    said: set[str] = set()
    while True:
        workloads, now = observed(), time.monotonic()
        for text in ("\n".join(workload.report.lines()) for workload in workloads):
            if text not in said:
                said.add(text)
                told(text)
        stuck_since = {each.name: stuck_since.get(each.name, now) for each in workloads if each.stuck}
        if all(workload.settled for workload in workloads) or now > deadline:
            return workloads
        if any(now - since >= _LASTS_S for since in stuck_since.values()):
            return workloads
        time.sleep(_POLL_S)


def _read(kube: KubeClient, kind: Kind, namespace: str) -> list[Object]:
    try:
        return kube.list(kind.api_version, kind.name, namespace or None)
    except NoKindMatch:
        return []
