"""The agents of one torchrun launch: how they find each other, and what they do for the program."""

from __future__ import annotations

import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from simulator.sandbox.library import nccl_log, recipe, topology, training, view
from simulator.sandbox.library.recipe import Failed, Recipe
from simulator.sandbox.library.view import Pod, View

DOCUMENT = "torchrun"
WAITING, STARTED, DONE, FAILED = "waiting", "started", "done", "failed"
POLL_SECONDS = 0.1


class Program(Protocol):
    """A simulated command that torchrun starts."""

    def prepare(self, arguments: list[str], team: Team) -> Any:
        """Reads command line and files on each node. Raises Failed."""

    def train(self, prepared: Any, team: Team) -> None:
        """Simulates all ranks on the first node. Raises Failed."""


def refuse_alone(name: str) -> int:
    """Prints why a program does not run without torchrun, and returns its exit code."""
    print(view.program(name)["without_torchrun"], file=sys.stderr)
    return 1


class Launch(NamedTuple):
    """One agent's part of a launch."""

    options: Namespace
    nodes: int
    host: str
    port: int
    timeout: int
    """Seconds to wait for the other agents."""

    @property
    def endpoint(self) -> str:
        return f"{self.host}:{self.port}"


class Team:
    """The agents of one launch, as one of them sees them."""

    def __init__(self, launch: Launch, texts: Recipe, program: Recipe) -> None:
        self.launch, self.program = launch, program
        self._texts = texts
        self._more: dict[str, Any] = {}
        self._signals: list[int] = []
        """One entry for each SIGTERM that this process received."""

    def catch_sigterm(self) -> None:
        """Records SIGTERM from now on if the program saves before it stops. Otherwise SIGTERM ends the process."""
        if self.program.get("stops_on_sigterm"):
            signal.signal(signal.SIGTERM, lambda number, _: self._signals.append(number))

    def pods(self, known: View) -> dict[int, Pod]:
        """Returns running pods that have published themselves, by node rank. Raises Failed for a duplicate rank."""
        found: dict[int, Pod] = {}
        for pod, document in self._agents(known):
            if document["rank"] in found:
                raise Failed(f"node rank {document['rank']} was given to two nodes")
            found[document["rank"]] = pod
        return found

    def check(self) -> list[Pod]:
        """Returns the pods in rank order. Raises Failed if one has gone or has failed."""
        known = view.load()
        pods = self.pods(known)
        for node in range(self.launch.nodes):
            pod = pods.get(node)
            if pod is None or not known.node_of(pod)["ready"] or phase(pod) == FAILED:
                rank = node * self.launch.options.nproc_per_node
                raise Failed(self._texts["lost"].format(rank=rank, node=node))
        return [pods[node] for node in range(self.launch.nodes)]

    def tell(self, phase: str, **more: Any) -> None:
        """Publishes this agent's phase and NCCL's settings here. `more` is kept for later calls."""
        self._more |= more
        environment = {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}
        files = topology.found_in(filter(None, [environment.get("NCCL_TOPO_FILE")]))
        options = self.launch.options
        known = {"id": options.rdzv_id, "endpoint": self.launch.endpoint, "rank": options.node_rank}
        view.tell(DOCUMENT, {**self._more, **known, "phase": phase, "nccl_conf": environment, "topologies": files})

    def connect(self) -> training.Ranks:
        """Connects NCCL over all GPUs of all nodes. Raises Failed."""
        places = [(pod, index) for pod in self.check() for index in range(self.launch.options.nproc_per_node)]
        return training.connect(places, dict(os.environ), nccl_log.Log(os.environ), self.program["cuda_error"])

    def stopped(self) -> bool:
        """Reports whether any node received SIGTERM. Raises Failed if one has gone."""
        return bool(self._signals) or any(said(pod).get("stop") for pod in self.check())

    def show(self, folder: Path) -> None:
        """Waits until all nodes see a folder. Raises Failed if one does not."""
        number = self._more.get("folder", (0, ""))[0] + 1
        self.tell(STARTED, folder=(number, str(folder)))
        while any(said(pod).get("seen") != number for pod in self.check()[1:]):
            time.sleep(POLL_SECONDS)

    def follow(self, first: Mapping[str, Any]) -> None:
        """Reports signals and looks for a folder, on other nodes while the first one trains. Raises Failed."""
        if self._signals and not self._more.get("stop"):
            self.tell(STARTED, stop=True)
        number, folder = first.get("folder", (0, ""))
        if number == self._more.get("seen", 0):
            return
        until = time.monotonic() + self.program["folder_wait_s"]
        while not Path(folder).exists():
            if time.monotonic() > until:
                raise self.uncaught(TimeoutError("Waiting for checkpoint directory timed out"))
            time.sleep(POLL_SECONDS)
        self.tell(STARTED, seen=number)

    def uncaught(self, error: Exception) -> Failed:
        """Returns the end of a program by an exception that it does not handle."""
        values = {"host": view.load().me.hostname, "kind": type(error).__name__, "error": error}
        return Failed("\n".join(recipe.lines(self.program, "uncaught", values)))

    def _agents(self, known: View) -> Iterator[tuple[Pod, Mapping[str, Any]]]:
        same = (self.launch.options.rdzv_id, self.launch.endpoint)
        for pod in known.pods.values():
            document = said(pod) if pod.running and pod.namespace == known.me.namespace else {}
            if (document.get("id"), document.get("endpoint")) == same:
                yield pod, document


def said(pod: Pod) -> Mapping[str, Any]:
    """Returns the data that the agent of a pod has published."""
    return pod.said(DOCUMENT) or {}


def phase(pod: Pod) -> str:
    return str(said(pod).get("phase", ""))
