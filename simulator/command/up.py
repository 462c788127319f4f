"""`make up` and `make down`: deploys the stack on the simulator, waits for its jobs, and destroys it."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from rich.console import Console

from simulator.command import clusters, diagnosed, environment, images, jobs, networks, pulumi_cli, stacks, waiting
from simulator.command.recovery import goes_on, recover, take_away_forgotten
from simulator.host import paths
from simulator.host.similar import similar
from simulator.kube.client import KubeClient
from simulator.tools.progress import elapsed, wrapped

JOBS_TIMEOUT_S = 600
CLUSTER = "cluster"
"""The name of the cluster in a stack. It is protected while claims in it keep files."""
_WORKLOADS = "workloadDetails"
"""The output that is missing while the network of a private stack is not reachable."""
console = Console(soft_wrap=True, highlight=False)


class UpFailed(Exception):
    """The stack is not in the expected state. The message names the command to use."""


def up() -> None:
    """Deploys the stack. Raises UpFailed if pulumi fails, or if a job fails, is faked, lacks its image or times out."""
    stack, start, inside = stacks.chosen(), time.monotonic(), os.environ.get(environment.INSIDE, "")
    try:
        _make_sure_of(stack)
        _go_inside(stack)
        outputs = _applied(stack)
        if _WORKLOADS not in outputs and _go_inside(stack):
            outputs = _applied(stack)
    except pulumi_cli.PulumiFailed as error:
        raise UpFailed(str(error)) from error
    if _WORKLOADS not in outputs:
        _told(_go_on(stack, outputs["next"]))
        return
    applied = time.monotonic()
    workloads = _settle(outputs)
    _show(workloads)
    console.print(
        f"\nThe stack took {elapsed(applied - start)}, its workloads {elapsed(time.monotonic() - applied)} (min:s).\n"
        f"`make shell STACK={stack}` opens a shell for pulumi, kubectl and helm.\n"
        f"`{take_away(stack, inside)}` takes it away."
    )
    _judge(stack, workloads)


def select(stack: str) -> tuple[dict[str, str], str]:
    """Returns variables that select a stack and its cluster in one shell, and a line that reports both.

    Creates the stack if it does not exist. Raises UpFailed.
    """
    try:
        _make_sure_of(stack)
        cluster = (pulumi_cli.read("stack", "output", "--json", stack=stack) or {}).get("clusterId")
    except pulumi_cli.PulumiFailed as error:
        raise UpFailed(str(error)) from error
    context = paths.cluster(cluster).name if cluster else ""
    use = f"context {context}" if context else f"no cluster of it yet: enter again after `make up STACK={stack}`"
    return environment.of_stack(stack, context), f"the stack {stack} is selected in this shell; kubectl: {use}"


def take_away(stack: str, inside: str = "") -> str:
    """Returns the command that destroys the stack, from inside a network if given. The default stack needs no name."""
    command = "make down" if stack == stacks.DEFAULT else f"make down STACK={stack}"
    return f"{command} INSIDE={inside}" if inside else command


def require_known(stack: str) -> None:
    """Raises UpFailed for a stack that neither the simulator nor a file knows, so that a typo stops nothing.

    A stack with a file that was never deployed is known: there is nothing to destroy.
    """
    if not stack:
        raise UpFailed(stacks.problem(stack) or "")
    sizes, files = _sizes(), stacks.files()
    if stack in {*sizes, *files}:
        return
    there = ", ".join(f"{name} ({size} resources)" for name, size in sorted(sizes.items())) or "none"
    meant = similar(stack, sorted({*sizes, *files}))
    raise UpFailed(
        f"there is no stack {stack}: neither in the simulator nor as a file Pulumi.{stack}.yaml. Nothing was stopped.\n"
        f"  the simulator has: {there}"
        + "".join(f"\n  if {name} is meant: {take_away(name)}" for name in meant)
        + "\n  to stop the simulator alone: make stop"
    )


def down() -> list[str]:
    """Destroys the stack if it exists. Returns the names of other stacks that have resources. Raises UpFailed."""
    stack, sizes = stacks.chosen(), _sizes()
    try:
        if stack in sizes:
            _require_free(stack, [name for name, size in sizes.items() if size and stacks.platform_of(name) == stack])
            _destroy(stack, [name for name, size in sizes.items() if size and name != stack])
        else:
            console.print(f"there is no stack {stack} in the simulator")
    except pulumi_cli.PulumiFailed as error:
        raise UpFailed(str(error)) from error
    sizes = _sizes()  # other stacks may have changed in the meantime
    others = sorted(name for name, size in sizes.items() if size and name != stack)
    for other in others:
        console.print(f"stack {other} stays ({sizes[other]} resources): `{take_away(other)}` destroys it too")
    return others


def _require_free(stack: str, consumers: Sequence[str]) -> None:
    """Raises UpFailed, before anything is destroyed, if other stacks run on it or its data is protected or locked."""
    kept = [f"stack {name} runs on {stack}: `{take_away(name)}` destroys it first" for name in sorted(consumers)]
    if protected := clusters.protected(stack):
        give_up = f"pulumi state unprotect --all --yes -s {stack}"
        lost = ""
        if CLUSTER in protected:  # its API server protects the files too
            claims = clusters.claims(clusters.of_stack(stack))
            lost = f" (with the files of the claims {', '.join(claims)})" if claims else ""
            give_up = f"pulumi config set -s {stack} --path storage.protect false && pulumi up -s {stack}"
        kept.append(
            f"{', '.join(protected)}{lost}: protected against deletion. To lose what is in there, with {stack}:\n"
            f"    {give_up}    # in `make shell`"
        )
    kept += [f"Azure deletes nothing under {lock}: `python -m simulator heal lock`" for lock in clusters.locked(stack)]
    if kept:
        raise UpFailed("\n  ".join([f"stack {stack} cannot go. Nothing was destroyed.", *kept]))


def _destroy(stack: str, others: Sequence[str]) -> None:
    """Destroys the stack. `others` are the stacks that stay. Raises PulumiFailed, with the reasons."""
    there = clusters.of_stack(stack)
    if starts := clusters.stopped(there):
        commands = "".join(f"\n    {command}    # in `make shell`" for command in starts)
        again = f"Nothing was destroyed. Start it, and then `{take_away(stack)}` again:{commands}"
        raise pulumi_cli.PulumiFailed(f"the cluster is stopped: its API server does not answer. {again}")
    _go_inside(stack)
    recover(stack, console.print)
    variables = goes_on(stack, console.print)
    if clusters.are_gone(there):
        console.print("the cluster that it is in is gone from Azure: what it had there is taken out of its state")
        variables |= clusters.DELETE_UNREACHABLE
    elif variables:
        take_away_forgotten(stack, others, console.print)
    if not clusters.are_gone(there):
        _name_claims(stack, there)
    if lost := clusters.containers(stack):
        _told(f"these blob containers are deleted, with all files in them: {', '.join(lost)}")
    held_up = partial(clusters.held_up, there)
    try:
        pulumi_cli.run("destroy", "--yes", "--skip-preview", stack=stack, variables=variables, held_up=held_up)
    except pulumi_cli.PulumiFailed as error:
        raise pulumi_cli.PulumiFailed("\n".join([str(error), *held_up()])) from error


def _name_claims(stack: str, there: Collection[str]) -> None:
    """Prints the claims with files that are deleted with the stack's own clusters, or stay on a shared platform."""
    platform_stack = stacks.platform_of(stack)
    if platform_stack is None and (lost := clusters.claims(there)):
        _told(f"these claims are deleted with the cluster, and their files with them: {', '.join(lost)}")
    elif platform_stack:
        for claim in (pulumi_cli.read("stack", "output", "--json", stack=stack) or {}).get("files") or {}:
            delete = "kubectl delete persistentvolumeclaim -n {} {}".format(*claim.split("/"))
            _told(f"the claim {claim} stays on stack {platform_stack} with its files. To delete them: {delete}")


def _applied(stack: str) -> dict[str, Any]:
    recover(stack, console.print)
    with images.pushed_meanwhile():
        found = goes_on(stack, console.print)
        options = ("--yes", "--skip-preview", "--suppress-outputs")
        pulumi_cli.run("up", *options, stack=stack, variables=found)
    outputs: dict[str, Any] = pulumi_cli.read("stack", "output", "--json", "--show-secrets", stack=stack)
    return outputs


def _go_inside(stack: str) -> bool:
    """Selects a machine in the network of the stack or its platform, unless a network is selected already."""
    if os.environ.get(environment.INSIDE):
        return False
    machines = networks.jump_boxes()
    network = next((label for label in networks.find(stacks.platform_of(stack) or stack) if machines[label]), None)
    if network is None:
        return False
    os.environ[environment.INSIDE] = network
    _told(f"inside the network {network}, as at its machine {machines[network][0]}")
    return True


def _go_on(stack: str, command: str) -> str:
    """Returns the message after a first phase, if the network has no machine to continue."""
    ways = [f"    make up STACK={stack} INSIDE={network}    # as a machine there" for network in networks.find(stack)]
    return "\n".join([f"Made what can be made from outside. On Azure one goes on by `{command}`, here by:", *ways])


def _make_sure_of(stack: str) -> None:
    """Creates the stack if it is new. Selects it only if no stack is selected, because that is the user's choice."""
    listed = pulumi_cli.read("stack", "ls", "--json") or []
    if not any(entry.get("current") for entry in listed):
        pulumi_cli.quiet("stack", "select", "--create", stack)
    elif stack not in {entry["name"].rpartition("/")[2] for entry in listed}:
        pulumi_cli.quiet("stack", "init", stack, "--no-select")


def _sizes() -> dict[str, int]:
    try:
        listed = pulumi_cli.read("stack", "ls", "--json") or []
    except pulumi_cli.PulumiFailed as error:
        raise UpFailed(str(error)) from error
    return {entry["name"].rpartition("/")[2]: entry.get("resourceCount") or 0 for entry in listed}


def _settle(outputs: dict[str, Any]) -> list[jobs.Workload]:
    wanted, cluster = outputs["workloadDetails"], paths.cluster(outputs["clusterId"])
    own = cluster / "admin.kubeconfig"  # the simulator's own file, which needs neither network nor login
    if wanted:
        _told(f"waiting for the workloads ({JOBS_TIMEOUT_S // 60} minutes at most)")
    try:
        with KubeClient.from_kubeconfig(own.read_text()) as kube, jobs.watching(kube, cluster, wanted) as look:
            workloads = waiting.wait(look, JOBS_TIMEOUT_S, _told)
        found = diagnosed.platform(own)
    except diagnosed.DiagnosisFailed as error:
        raise UpFailed(f"python -m diagnosis failed: {error}") from error
    if found["findings"]:
        _told("\n".join([f"platform: {found['phase']}", *diagnosed.texts(found["findings"])]))
    return workloads


def _told(text: str) -> None:
    console.print(text, markup=False)


def _show(workloads: list[jobs.Workload]) -> None:
    """Prints the workloads, in lines of at most 80 columns unless names are longer."""
    for workload in workloads:
        colour = "green" if workload.passed else "red" if workload.failed else "yellow"
        console.print(f"\n[bold]{workload.name}[/] [{colour}]{workload.phase}[/]")
        _told(f"  {workload.command}")
        for verdict in workload.report.verdicts:
            _told("\n".join(wrapped(f"  {verdict}", "    ")))
        width = max((len(pod) for pod, _ in workload.ran_on), default=0)
        for pod, node in workload.ran_on:
            _told(f"  {pod:{width}}  {node}")


def _judge(stack: str, workloads: list[jobs.Workload]) -> None:
    bad = [workload for workload in workloads if not workload.passed]
    if bad:
        where = f"`make shell STACK={stack}` enters the simulator, where these commands act."
        raise UpFailed("\n".join([*(workload.complaint(stack) for workload in bad), where]))
