"""Observes a stack's workloads: jobs until they end, trainings and services until they run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.command import diagnosed
from simulator.command.diagnosed import Report
from simulator.kube.client import KubeClient
from simulator.kubelet import placements
from simulator.kubelet.status import STUBBED
from simulator.tools.progress import wrapped

_TYPES = {"appwrapper": "AppWrapper", "pytorchjob": "PyTorchJob", "rayjob": "RayJob"}
"""The ends of Pulumi's type names, by kubectl's kind. Type names of other kinds end with Job."""


@dataclass(frozen=True)
class Workload:
    """A workload of the stack's output `workloadDetails`, and its state."""

    name: str
    namespace: str
    command: str
    """The command that shows the workload's log, or how to access the workload."""
    why: str
    """The command that shows why the workload waits."""
    ends: bool
    report: Report
    ran_on: tuple[tuple[str, str], ...] = ()
    stubbed: tuple[str, ...] = ()
    """Reasons why pods or containers run no process. Without a process, they always start and succeed."""

    @property
    def phase(self) -> str:
        """The phase, with "stubbed" if a stubbed workload would otherwise look successful."""
        phase = self.report.phase
        if not self.stubbed or self.report.outcome not in ("succeeded", "running"):
            return phase
        no_process_ran = any(why.startswith(f"{STUBBED}:") for why in self.stubbed)
        return f"{phase} ({'stubbed: no process ran' if no_process_ran else 'partly stubbed'})"

    @property
    def failed(self) -> bool:
        return self.report.outcome == "failed"

    @property
    def passed(self) -> bool:
        return self.settled and not self.failed and not self.stubbed

    @property
    def stuck(self) -> bool:
        """Whether the workload waits for something that does not come by itself."""
        return any(finding.lasts for finding in self.report.findings)

    @property
    def settled(self) -> bool:
        outcome = self.report.outcome
        return outcome in ("failed", "succeeded") or (outcome == "running" and not self.ends)

    @property
    def head(self) -> str:
        return f"{self.report.name}: {self.phase}" if self.phase != self.report.phase else self.report.text

    def complaint(self, stack: str, known: Mapping[str, str] | None = None) -> str:
        """Returns the error and the commands for a workload that did not pass.

        `known` maps causes that were shown before to the name of their workload.
        """
        texts = [finding.text for finding in self.report.findings]
        causes = dict.fromkeys(
            f"  waits: for the same reason as {known[text]}" if known and text in known else text for text in texts
        )
        stubbed = [line for why in self.stubbed for line in wrapped(f"  {why}", "    ")]
        lines = [self.head, *causes, *stubbed]
        lines.append(f"  look at it:   {self.command if self.failed or self.stubbed else self.why}")
        if self.failed or self.stubbed:
            lines.append(f"  run it again: {self._again(stack)}")
        return "\n".join(lines)

    def _again(self, stack: str) -> str:
        """Returns the command to run the workload again, with a refresh if the object no longer exists."""
        if not self.report.kind:
            return f"pulumi up -s {stack} --refresh"
        if self.report.kind == "deployment":
            return f"kubectl rollout restart -n {self.namespace} deployment {self.report.name}"
        return f"pulumi up -s {stack} --replace '**:{_TYPES.get(self.report.kind, 'Job')}::{self.name}'"


@contextlib.contextmanager
def watching(
    kube: KubeClient, cluster: Path, outputs: Mapping[str, Mapping[str, Any]]
) -> Iterator[Callable[[], list[Workload]]]:
    """Yields a function that waits about a second for the next state of the workloads, and returns it.

    `cluster` is the cluster's folder, `outputs` the stack's `workloadDetails`. The function raises DiagnosisFailed.
    """
    wanted: dict[str, list[str]] = {}
    for output in outputs.values():
        wanted.setdefault(output["namespace"], []).append(output["name"])
    with diagnosed.watching(cluster / "admin.kubeconfig", wanted) as look:
        yield lambda: observe(kube, outputs, cluster / "placements.json", look())


def observe(
    kube: KubeClient, outputs: Mapping[str, Mapping[str, Any]], ran: Path, reports: Iterable[tuple[str, Report]]
) -> list[Workload]:
    """Returns the workloads.

    `outputs` is the stack's `workloadDetails`, `ran` is the kubelet's record of the pods' nodes.
    """
    placed, known = placements.load(ran), dict[tuple[str, str], Report]()
    for namespace, report in reports:  # diagnosis adds the kind to ambiguous names
        known.setdefault((namespace, report.name.rpartition("/")[2]), report)
    live = {name: kube.list("v1", "Pod", name) for name in {output["namespace"] for output in outputs.values()}}
    found = []
    for name, output in sorted(outputs.items()):
        report = known[output["namespace"], output["name"]]
        pods = [pod for pod in placed if pod["job_uid"] in report.objects]
        ran_on = sorted((pod["pod"], pod["node"]) for pod in pods)
        mine = (pod for pod in live[output["namespace"]] if pod["metadata"]["name"] in report.pods)
        reasons = {*map(placements.why_stubbed, mine), *(pod.get("why_stubbed", "") for pod in pods)} - {""}
        given = (output["namespace"], output["command"], output["why"], output["ends"])
        found.append(Workload(name, *given, report, tuple(ran_on), tuple(sorted(reasons))))
    return found
