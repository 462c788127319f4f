"""`torchrun`: one agent on each node; all meet at the first one, which then plays the training of all ranks at once."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from simulator.sandbox.commands import c10d, topology, world
from simulator.sandbox.commands.torchrun_arguments import Launch, UsageError, parse
from simulator.sandbox.commands.world import Pod, World

DOCUMENT = "torchrun"
WAITING, STARTED, DONE, FAILED = "waiting", "started", "done", "failed"
POLL_SECONDS = 0.1
USAGE_CODE = 2


class AgentError(Exception):
    """What ends an agent, as PyTorch words it."""


class ProgramError(Exception):
    """What ends the program on this node; it has told the reason itself."""


class Program(Protocol):
    """A module of this folder that plays a program under torchrun."""

    def prepare(self, arguments: list[str]) -> Any:
        """What each node does alone: command line and files. Raises ProgramError."""

    def train(self, prepared: Any, team: Team) -> None:
        """What the first node plays for all ranks. Raises ProgramError."""

    def follow(self, team: Team, asked: Mapping[str, Any]) -> None:
        """What another node does, again and again, while the first one plays: what that asks of it, if anything.

        Raises ProgramError.
        """


class Team:
    """The agents of one launch, seen by one of them."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self._more: dict[str, Any] = {}

    def pods(self, known: World) -> dict[int, Pod]:
        """By node rank: those that run and have published themselves. Raises AgentError for a rank taken twice."""
        found: dict[int, Pod] = {}
        for pod, document in self._agents(known):
            if document["rank"] in found:
                raise AgentError(f"node rank {document['rank']} was given to two nodes")
            found[document["rank"]] = pod
        return found

    def check(self) -> list[Pod]:
        """The pods in the order of ranks. Raises AgentError when one has gone or has failed."""
        known = world.load()
        pods = self.pods(known)
        for rank in range(self.launch.nodes):
            pod = pods.get(rank)
            if pod is None or not known.node_of(pod)["ready"] or self.phase(pod) == FAILED:
                raise AgentError(
                    f"[Rank {rank * self.launch.per_node}] Watchdog caught collective operation timeout: "
                    f"the ranks of node {rank} do not answer."
                )
        return [pods[rank] for rank in range(self.launch.nodes)]

    def tell(self, phase: str, **more: Any) -> None:
        """Publishes how far this agent is, and what NCCL reads here; `more` is the program's own, and stays."""
        self._more |= more
        environment = {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}
        files = topology.found_in(filter(None, [environment.get("NCCL_TOPO_FILE")]))
        launch = self.launch
        known = {"id": launch.identity, "endpoint": f"{launch.host}:{launch.port}", "rank": launch.rank}
        world.tell(DOCUMENT, {**self._more, **known, "phase": phase, "nccl_conf": environment, "topologies": files})

    def told(self, name: str, default: Any) -> Any:
        """What this agent has told last, of `more`."""
        return self._more.get(name, default)

    @staticmethod
    def phase(pod: Pod) -> str:
        document = pod.said(DOCUMENT)
        return str(document["phase"]) if document else ""

    def _agents(self, known: World) -> Iterator[tuple[Pod, Mapping[str, Any]]]:
        for pod in known.pods.values():
            document = pod.said(DOCUMENT)
            if document and pod.running and pod.namespace == known.me.namespace:
                same = (self.launch.identity, f"{self.launch.host}:{self.launch.port}")
                if (document["id"], document["endpoint"]) == same:
                    yield pod, document


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
        _meet(team)
        prepared = program.prepare(list(launch.program[1:]))
        team.tell(STARTED)
        if launch.rank:
            _follow(team, program)
        else:
            _wait_until_all_started(team)
            program.train(prepared, team)
    except (AgentError, ProgramError) as error:
        team.tell(FAILED)
        print(_ended(launch, error), file=sys.stderr)
        return 1
    team.tell(DONE)
    return 0


def _program(launch: Launch) -> Program:
    path = Path(launch.program[0]).resolve()
    module = world.load_self()["commands"].get(str(path))
    if module is None and path.exists():
        raise UsageError(f"simulator: {launch.program[0]} is no program that it plays")
    if module is None:
        raise UsageError(f"can't open file '{path}': [Errno 2] No such file or directory")
    program: Program = importlib.import_module(f"simulator.sandbox.commands.{module}")
    return program


def _meet(team: Team) -> None:
    """Waits until all agents are at the first node's door. Raises AgentError.

    The first node too goes there by its address, which is tried until time is up (`c10d`).
    """
    launch, warned = team.launch, False
    team.tell(WAITING)
    deadline = time.monotonic() + launch.timeout
    while time.monotonic() < deadline:
        known = world.load()
        pods, there = team.pods(known), known.resolve(launch.host)
        if len(pods) == launch.nodes and _is_first(pods, there):
            return
        if there is None and not warned and not world.is_address(launch.host):
            print(c10d.unresolved(launch.host, launch.port), file=sys.stderr)
            warned = True
        time.sleep(POLL_SECONDS)
    known = world.load()
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


def _follow(team: Team, program: Program) -> None:
    """Waits for the first node to end. Raises AgentError when it fails or goes away, and ProgramError."""
    first = next(pod.key for rank, pod in team.pods(world.load()).items() if rank == 0)
    while True:
        pod = world.load().pods.get(first)
        if pod is not None and (team.phase(pod) == DONE or pod.facts["phase"] == "Succeeded"):
            return
        if pod is None or not pod.running or team.phase(pod) == FAILED:
            raise AgentError(
                "[Rank 0] Watchdog caught collective operation timeout: the ranks of node 0 do not answer."
            )
        team.check()
        program.follow(team, pod.said(DOCUMENT) or {})
        time.sleep(POLL_SECONDS)


def _ended(launch: Launch, error: Exception) -> str:
    rule = "=" * 60
    reason = f"{error}\n" if isinstance(error, AgentError) else ""
    return (
        f"{reason}torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n{rule}\n"
        f"{launch.program[0]} FAILED\n{rule}\nRoot Cause (first observed failure):\n[0]:\n"
        f"  rank      : {launch.rank * launch.per_node} (local_rank: 0)\n  exitcode  : 1\n{rule}"
    )
