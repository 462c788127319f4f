"""The agents of one torchrun launch: how they find each other, and what they ask of the program that they play."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from simulator.sandbox.library import topology, view
from simulator.sandbox.library.torchrun_arguments import Launch
from simulator.sandbox.library.view import Pod, View

DOCUMENT = "torchrun"
WAITING, STARTED, DONE, FAILED = "waiting", "started", "done", "failed"
POLL_SECONDS = 0.1


class AgentError(Exception):
    """What ends an agent, as PyTorch words it."""


class ProgramError(Exception):
    """What ends the program on this node, by this exit code; it has told the reason itself.

    Others than 1 are those of all ranks alike: the program sees to that.
    """

    def __init__(self, text: str = "", code: int = 1) -> None:
        super().__init__(text)
        self.code = code


class Program(Protocol):
    """A simulated command that plays a program under torchrun."""

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

    def pods(self, known: View) -> dict[int, Pod]:
        """By node rank: those that run and have published themselves. Raises AgentError for a rank taken twice."""
        found: dict[int, Pod] = {}
        for pod, document in self._agents(known):
            if document["rank"] in found:
                raise AgentError(f"node rank {document['rank']} was given to two nodes")
            found[document["rank"]] = pod
        return found

    def check(self) -> list[Pod]:
        """The pods in the order of ranks. Raises AgentError when one has gone or has failed."""
        known = view.load()
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
        view.tell(DOCUMENT, {**self._more, **known, "phase": phase, "nccl_conf": environment, "topologies": files})

    def told(self, name: str, default: Any) -> Any:
        """What this agent has told last, of `more`."""
        return self._more.get(name, default)

    @staticmethod
    def phase(pod: Pod) -> str:
        document = pod.said(DOCUMENT)
        return str(document["phase"]) if document else ""

    def _agents(self, known: View) -> Iterator[tuple[Pod, Mapping[str, Any]]]:
        for pod in known.pods.values():
            document = pod.said(DOCUMENT)
            if document and pod.running and pod.namespace == known.me.namespace:
                same = (self.launch.identity, f"{self.launch.host}:{self.launch.port}")
                if (document["id"], document["endpoint"]) == same:
                    yield pod, document
