"""`make up` and `make down`: deploys the stack, waits for its jobs, and destroys it."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from rich.console import Console

from simulator.command import clusters, diagnosed, environment, images, jobs, networks, pulumi_cli, stacks, waiting
from simulator.command.recovery import continuation, delete_unrecorded, recover
from simulator.host import paths
from simulator.host.similar import similar
from simulator.kube.client import KubeClient
from simulator.tools.progress import elapsed, wrapped

JOBS_TIMEOUT_S = 600
CLUSTER = "cluster"
"""The cluster's name in a stack. Pulumi protects the cluster while claims keep files in it."""
_WORKLOADS = "workloadDetails"
"""An output that is missing while the network of a private stack is not reachable."""
console = Console(soft_wrap=True, highlight=False)


class UpFailed(Exception):
    """The stack is not in the expected state. The message names the command to use."""


def up() -> None:
    """Deploys the stack. Raises UpFailed if pulumi fails or a job fails, is stubbed, lacks its image or times out."""
    stack, start, inside = stacks.chosen(), time.monotonic(), os.environ.get(environment.INSIDE, "")
    try:
        _ensure_stack(stack)
        _enter_network(stack)
        outputs = _applied(stack)
        if _WORKLOADS not in outputs and _enter_network(stack):
            outputs = _applied(stack)
    except pulumi_cli.PulumiFailed as error:
        raise UpFailed(str(error)) from error
    if _WORKLOADS not in outputs:
        _print(_next_phase(stack, outputs["next"]))
        return
    applied = time.monotonic()
    workloads = _settle(outputs)
    _show(workloads)
    console.print(
        f"\nThe stack took {elapsed(applied - start)}, its workloads {elapsed(time.monotonic() - applied)} (min:s).\n"
        f"To use pulumi, kubectl and helm: make shell STACK={stack}\n"
        f"To destroy it: {destroy_command(stack, inside)}"
    )
    _judge(stack, workloads)


def select(stack: str) -> tuple[dict[str, str], str]:
    """Returns variables that select a stack and its cluster in one shell, and a line that names both.

    Creates a missing stack. Raises UpFailed.
    """
    try:
        _ensure_stack(stack)
        cluster = (pulumi_cli.read("stack", "output", "--json", stack=stack) or {}).get("clusterId")
    except pulumi_cli.PulumiFailed as error:
        raise UpFailed(str(error)) from error
    context = paths.cluster(cluster).name if cluster else ""
    use = f"context {context}" if context else f"no cluster yet; start another shell after `make up STACK={stack}`"
    return environment.of_stack(stack, context), f"the stack {stack} is selected in this shell; kubectl: {use}"


def destroy_command(stack: str, inside: str = "") -> str:
    """Returns the command that destroys the stack, in the network `inside` if given. Omits the default stack's name."""
    command = "make down" if stack == stacks.DEFAULT else f"make down STACK={stack}"
    return f"{command} INSIDE={inside}" if inside else command


def require_known(stack: str) -> None:
    """Raises UpFailed for a stack that has neither state nor file, so that a mistyped name stops nothing."""
    if not stack:
        raise UpFailed(stacks.problem(stack) or "")
    sizes, files = _sizes(), stacks.files()
    if stack in {*sizes, *files}:
        return
    deployed = ", ".join(f"{name} ({size} resources)" for name, size in sorted(sizes.items())) or "none"
    likely = similar(stack, sorted({*sizes, *files}))
    raise UpFailed(
        f"unknown stack {stack}: it is not deployed, and Pulumi.{stack}.yaml does not exist. Nothing was stopped.\n"
        f"  deployed stacks: {deployed}"
        + "".join(f"\n  to destroy {name}: {destroy_command(name)}" for name in likely)
        + "\n  to stop only the simulator: make stop"
    )


def down() -> list[str]:
    """Destroys the stack if it exists. Returns the names of other stacks with resources. Raises UpFailed."""
    stack, sizes = stacks.chosen(), _sizes()
    try:
        if stack in sizes:
            _require_free(stack, [name for name, size in sizes.items() if size and stacks.platform_of(name) == stack])
            _destroy(stack, [name for name, size in sizes.items() if size and name != stack])
        else:
            console.print(f"stack {stack} is not deployed")
    except pulumi_cli.PulumiFailed as error:
        raise UpFailed(str(error)) from error
    sizes = _sizes()  # other stacks may have changed
    others = sorted(name for name, size in sizes.items() if size and name != stack)
    for other in others:
        console.print(f"stack {other} stays ({sizes[other]} resources); to destroy it: {destroy_command(other)}")
    return others


def _require_free(stack: str, consumers: Sequence[str]) -> None:
    """Raises UpFailed before any deletion, if other stacks use this platform, or data is protected or locked."""
    kept = [
        f"stack {name} uses this platform; destroy that stack first: {destroy_command(name)}"
        for name in sorted(consumers)
    ]
    if protected := clusters.protected(stack):
        give_up = f"pulumi state unprotect --all --yes -s {stack}"
        lost = ""
        if CLUSTER in protected:  # protected because of the files of its claims
            claims = clusters.claims(clusters.of_stack(stack))
            lost = f" (with the files of the claims {', '.join(claims)})" if claims else ""
            give_up = f"pulumi config set -s {stack} --path storage.protect false && pulumi up -s {stack}"
        kept.append(
            f"{', '.join(protected)}{lost}: protected against deletion. To delete the data with the stack:\n"
            f"    {give_up}    # in `make shell`"
        )
    kept += [f"Azure deletes nothing under {lock}: python -m simulator heal lock" for lock in clusters.locked(stack)]
    if kept:
        raise UpFailed("\n  ".join([f"stack {stack} cannot be destroyed. Nothing was changed.", *kept]))


def _destroy(stack: str, others: Sequence[str]) -> None:
    """Destroys the stack. `others` are the stacks that stay. Raises PulumiFailed, with the reasons."""
    own = clusters.of_stack(stack)
    if starts := clusters.stopped(own):
        commands = "".join(f"\n    {command}    # in `make shell`" for command in starts)
        again = f"Nothing was destroyed. Start the cluster, then run `{destroy_command(stack)}` again:{commands}"
        raise pulumi_cli.PulumiFailed(f"the cluster is stopped: its API server does not answer. {again}")
    _enter_network(stack)
    recover(stack, console.print)
    variables = continuation(stack, console.print)
    if clusters.are_gone(own):
        console.print(
            "the stack's cluster no longer exists in Azure: objects in the cluster are removed from the state"
        )
        variables |= clusters.DELETE_UNREACHABLE
    elif variables:
        delete_unrecorded(stack, others, console.print)
    if not clusters.are_gone(own):
        _print_claims(stack, own)
    if lost := clusters.containers(stack):
        _print(f"these blob containers are deleted, with all files in them: {', '.join(lost)}")
    blocked = partial(clusters.blocked_deletions, own)
    try:
        pulumi_cli.run("destroy", "--yes", "--skip-preview", stack=stack, variables=variables, blocked=blocked)
    except pulumi_cli.PulumiFailed as error:
        raise pulumi_cli.PulumiFailed("\n".join([str(error), *blocked()])) from error


def _print_claims(stack: str, own: Collection[str]) -> None:
    """Prints claims whose files are deleted with the stack's own cluster, or stay on a shared platform."""
    platform_stack = stacks.platform_of(stack)
    if platform_stack is None and (lost := clusters.claims(own)):
        _print(f"these claims are deleted with the cluster, and their files with them: {', '.join(lost)}")
    elif platform_stack:
        for claim in (pulumi_cli.read("stack", "output", "--json", stack=stack) or {}).get("files") or {}:
            delete = "kubectl delete persistentvolumeclaim -n {} {}".format(*claim.split("/"))
            _print(f"the claim {claim} stays on stack {platform_stack} with its files. To delete the claim: {delete}")


def _applied(stack: str) -> dict[str, Any]:
    recover(stack, console.print)
    with images.registering():
        variables = continuation(stack, console.print)
        options = ("--yes", "--skip-preview", "--suppress-outputs")
        pulumi_cli.run("up", *options, stack=stack, variables=variables)
    outputs: dict[str, Any] = pulumi_cli.read("stack", "output", "--json", "--show-secrets", stack=stack)
    return outputs


def _enter_network(stack: str) -> bool:
    """Selects the stack's or platform's network with a jump box, unless one is selected. Returns True if so."""
    if os.environ.get(environment.INSIDE):
        return False
    machines = networks.jump_boxes()
    network = next((label for label in networks.find(stacks.platform_of(stack) or stack) if machines[label]), None)
    if network is None:
        return False
    os.environ[environment.INSIDE] = network
    _print(f"running in the network {network}, as if on the machine {machines[network][0]}")
    return True


def _next_phase(stack: str, command: str) -> str:
    commands = [
        f"    make up STACK={stack} INSIDE={network}    # as a machine in that network"
        for network in networks.find(stack)
    ]
    return "\n".join(
        [f"The first of two phases is complete. On Azure, continue with `{command}`; here with:", *commands]
    )


def _ensure_stack(stack: str) -> None:
    """Creates a missing stack. Selects it only if no stack is selected: users choose the stack."""
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
    own = cluster / "admin.kubeconfig"  # the simulator's own file needs neither network nor login
    if wanted:
        _print(f"waiting for the workloads ({JOBS_TIMEOUT_S // 60} minutes at most)")
    try:
        with KubeClient.from_kubeconfig(own.read_text()) as kube, jobs.watching(kube, cluster, wanted) as look:
            workloads = waiting.wait(look, JOBS_TIMEOUT_S, _print)
        found = diagnosed.platform(own)
    except diagnosed.DiagnosisFailed as error:
        raise UpFailed(f"python -m diagnosis failed: {error}") from error
    if found["findings"]:
        _print("\n".join([f"platform: {found['phase']}", *diagnosed.texts(found["findings"])]))
    return workloads


def _print(text: str) -> None:
    console.print(text, markup=False)


def _show(workloads: list[jobs.Workload]) -> None:
    """Prints workloads in lines of at most 80 columns, unless names are longer."""
    for workload in workloads:
        colour = "green" if workload.passed else "red" if workload.failed else "yellow"
        console.print(f"\n[bold]{workload.name}[/] [{colour}]{workload.phase}[/]")
        if workload.passed:  # for other workloads, the error has the commands
            _print(f"  {workload.command}")
        for verdict in workload.report.verdicts:
            _print("\n".join(wrapped(f"  {verdict}", "    ")))
        width = max((len(pod) for pod, _ in workload.ran_on), default=0)
        for pod, node in workload.ran_on:
            _print(f"  {pod:{width}}  {node}")


def _judge(stack: str, workloads: list[jobs.Workload]) -> None:
    bad = [workload for workload in workloads if not workload.passed]
    known: dict[str, str] = {}
    complaints = []
    for workload in bad:
        complaints.append(workload.complaint(stack, known))
        known = dict.fromkeys((finding.text for finding in workload.report.findings), workload.name) | known
    if bad:
        raise UpFailed("\n".join([*complaints, f"Run these commands in: make shell STACK={stack}"]))
