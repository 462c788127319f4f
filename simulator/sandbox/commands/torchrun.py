"""`torchrun`: one agent on each node; all meet at the first one, which then plays the training of all ranks at once."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from simulator.sandbox.library import c10d, view
from simulator.sandbox.library.torch_agents import (
    DOCUMENT,
    DONE,
    FAILED,
    POLL_SECONDS,
    STARTED,
    WAITING,
    AgentError,
    Program,
    ProgramError,
    Team,
)
from simulator.sandbox.library.torchrun_arguments import Launch, UsageError, parse
from simulator.sandbox.library.view import Pod

USAGE_CODE = 2
_TOLD_SECONDS = 30
"""How long a pod may take to say that it has ended, on a busy machine."""


def main(arguments: list[str]) -> int:
    """0 when the program has ended well on all nodes."""
    try:
        launch = parse(arguments)
        program = _program(launch)
    except UsageError as error:
        print(
            f"usage: torchrun [-h] [--nnodes NNODES] ... training_script ...\ntorchrun: error: {error}", file=sys.stderr
        )
        return USAGE_CODE
    team = Team(launch)
    try:
        first = _meet(team)
        prepared = program.prepare(list(launch.program[1:]))
        team.tell(STARTED)
        if launch.rank:
            _follow(team, program, first)
        else:
            _wait_until_all_started(team)
            program.train(prepared, team)
    except (AgentError, ProgramError) as error:
        team.tell(FAILED, code=_code(error))
        print(_ended(launch, error), file=sys.stderr)
        return 1
    team.tell(DONE)
    return 0


def _program(launch: Launch) -> Program:
    path = Path(f"{launch.program[0].replace('.', '/')}.py" if launch.module else launch.program[0]).resolve()
    module = view.load_self()["commands"].get(str(path))
    if module is None and path.exists():
        raise UsageError(f"simulator: {launch.program[0]} is no program that it plays")
    if module is None:
        raise UsageError(f"can't open file '{path}': [Errno 2] No such file or directory")
    program: Program = importlib.import_module(f"simulator.sandbox.commands.{module}")
    return program


def _meet(team: Team) -> str:
    """Waits until all agents are at the first node's door; the key of its pod. Raises AgentError.

    The first node too goes there by its address, which is tried until time is up (`c10d`).
    """
    launch, warned = team.launch, False
    team.tell(WAITING)
    deadline = time.monotonic() + launch.timeout
    while time.monotonic() < deadline:
        known = view.load()
        pods, there = team.pods(known), known.resolve(launch.host)
        if len(pods) == launch.nodes and _is_first(pods, there):
            return pods[0].key
        if there is None and not warned and not view.is_address(launch.host):
            print(c10d.unresolved(launch.host, launch.port), file=sys.stderr)
            warned = True
        time.sleep(POLL_SECONDS)
    known = view.load()
    raise AgentError(_alone(launch, team.pods(known), known.resolve(launch.host)))


def _is_first(pods: Mapping[int, Pod], there: Pod | None) -> bool:
    first = pods.get(0)
    return first is not None and there is not None and first.key == there.key


def _alone(launch: Launch, pods: Mapping[int, Pod], there: Pod | None) -> str:
    """What an agent says that has not met the others: where the first node is reached, that one waits for the rest."""
    if not _is_first(pods, there):
        after = f"{launch.timeout * 1000}ms"
        return f"torch.distributed.DistNetworkError: {c10d.timed_out(launch.host, launch.port, after)}"
    if launch.rank == 0:
        return f"torch.distributed.DistStoreError: {c10d.too_few(len(pods), launch.nodes, launch.timeout)}"
    return (
        "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. Did the remote "
        "server shutdown or crash?"
    )


def _wait_until_all_started(team: Team) -> None:
    while not all(team.phase(pod) in (STARTED, DONE) for pod in team.check()):
        time.sleep(POLL_SECONDS)


def _follow(team: Team, program: Program, first: str) -> None:
    """Waits for the first node to end. Raises AgentError when it fails or goes away, and ProgramError."""
    while True:
        pod = view.load().pods.get(first)
        if pod is not None and (team.phase(pod) == DONE or pod.facts["phase"] == "Succeeded"):
            return
        if pod is not None and team.phase(pod) == FAILED and (code := (pod.said(DOCUMENT) or {}).get("code", 1)) != 1:
            raise ProgramError(code=code)
        if pod is None or not pod.running or team.phase(pod) == FAILED:
            raise AgentError(
                "[Rank 0] Watchdog caught collective operation timeout: the ranks of node 0 do not answer."
            )
        try:
            team.check()
        except AgentError:
            if _has_ended(team, first):  # the next round tells how
                continue
            raise
        program.follow(team, pod.said(DOCUMENT) or {})
        time.sleep(POLL_SECONDS)


def _has_ended(team: Team, key: str) -> bool:
    """Whether it has by itself. What it published goes with its process, a moment before its pod says how it ended."""
    until = time.monotonic() + _TOLD_SECONDS
    while time.monotonic() < until:
        known = view.load()
        pod = known.pods.get(key)
        if pod is None or not known.node_of(pod)["ready"]:
            return False
        if not pod.running or team.phase(pod):
            return not pod.running or team.phase(pod) in (FAILED, DONE)  # else it was started again
        time.sleep(POLL_SECONDS)
    return False


def _ended(launch: Launch, error: Exception) -> str:
    rule = "=" * 60
    reason = f"{error}\n" if isinstance(error, AgentError) else ""
    return (
        f"{reason}torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n{rule}\n"
        f"{launch.program[0]} FAILED\n{rule}\nRoot Cause (first observed failure):\n[0]:\n"
        f"  rank      : {launch.rank * launch.per_node} (local_rank: 0)\n  exitcode  : {_code(error)} (pid: 2)\n{rule}"
    )


def _code(error: Exception) -> int:
    return error.code if isinstance(error, ProgramError) else 1
