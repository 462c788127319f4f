"""`make up` and `make down`: the stack on the simulator, from any state to done, and what came of its jobs."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console
from rich.table import Table

from simulator import jobs, paths, pulumi_cli
from simulator.kube.client import KubeClient
from simulator.recovery import recover

JOBS_TIMEOUT_S = 600
console = Console()


class UpFailed(Exception):
    """The stack is not what it should be; the message says what to look at."""


def stack_name() -> str:
    return os.environ.get("STACK") or "dev"


def up() -> None:
    """Raises UpFailed when pulumi fails, or a job failed or did not settle in ten minutes."""
    stack = stack_name()
    try:
        pulumi_cli.quiet("stack", "select", "--create", stack)
        recover(stack, _kubeconfig(), console.print)
        pulumi_cli.run("up", "--yes", "--skip-preview", stack=stack)
        outputs = pulumi_cli.read("stack", "output", "--json", "--show-secrets", stack=stack)
    except pulumi_cli.PulumiFailed as error:
        raise UpFailed(str(error)) from error
    workloads = _settle(outputs)
    _show(workloads)
    _judge(workloads)


def down() -> None:
    """Destroys the stack, if there is one. Raises UpFailed."""
    stack = stack_name()
    try:
        if stack not in _stacks():
            return
        recover(stack, _kubeconfig(), console.print)
        pulumi_cli.run("destroy", "--yes", "--skip-preview", stack=stack)
    except pulumi_cli.PulumiFailed as error:
        raise UpFailed(str(error)) from error


def _stacks() -> set[str]:
    return {entry["name"].rpartition("/")[2] for entry in pulumi_cli.read("stack", "ls", "--json") or []}


def _kubeconfig() -> str | None:
    file = paths.home() / "kubeconfig"
    return file.read_text() if file.exists() else None


def _settle(outputs: dict[str, dict[str, dict[str, str]]]) -> list[jobs.Workload]:
    wanted = outputs.get("workloads") or {}
    if not wanted:
        return []
    kube = KubeClient.from_kubeconfig(str(outputs["kubeconfig"]))
    console.print(f"waiting for {len(wanted)} workloads ({JOBS_TIMEOUT_S // 60} minutes at most)")
    return jobs.wait(lambda: _observe(kube, wanted), JOBS_TIMEOUT_S, console.print)


def _observe(kube: KubeClient, wanted: dict[str, dict[str, str]]) -> list[jobs.Workload]:
    return jobs.observe(kube, wanted, placements_file())


def placements_file() -> Path:
    return next(iter(sorted(paths.home().glob("clusters/*/placements.json"))), paths.home() / "none")


def _show(workloads: list[jobs.Workload]) -> None:
    table = Table("workload", "namespace", "phase", "ran on", "look at it with", title="workloads")
    for workload in workloads:
        nodes = "\n".join(workload.nodes)
        table.add_row(workload.name, workload.namespace, workload.phase, nodes, workload.command)
    console.print(table)
    console.print(
        "`make shell` enters the simulator: pulumi, kubectl and helm act on it there. `make down` takes it away."
    )


def _judge(workloads: list[jobs.Workload]) -> None:
    bad = [workload for workload in workloads if not workload.settled or workload.failed]
    if bad:
        lines = [f"{w.name} is {w.phase}: {w.message or 'no message'}; look at it with: {w.command}" for w in bad]
        raise UpFailed("\n".join(lines))
