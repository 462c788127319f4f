"""The agents of one torchrun launch, which find each other in world.json."""

from __future__ import annotations

import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulator.sandbox.library import nccl_log, topology, training, view
from simulator.sandbox.library.recipe import Failed, Recipe, Values
from simulator.sandbox.library.view import Pod, View

DOCUMENT = "torchrun"
WAITING, STARTED, DONE, FAILED = "waiting", "started", "done", "failed"
POLL_SECONDS = 0.1
END_SECONDS = 30
"""Seconds that a pod may need to report its end on a busy machine."""


def refuse_alone(name: str) -> int:
    print(view.program(name)["without_torchrun"], file=sys.stderr)
    return 1


class Team:
    """One agent, which reads the state of the launch's other agents in world.json."""

    def __init__(self, options: Namespace, texts: Recipe, program: Recipe) -> None:
        self.options, self.program = options, program
        self._texts, self._more = texts, dict[str, Any]()
        self._signals: list[int] = []

    def meet(self) -> str:
        """Waits until all agents run and find the first node. Returns the key of that node's pod. Raises Failed."""
        options, deadline, pods, there = self.options, time.monotonic() + self.options.timeout, dict[int, Pod](), None
        self.publish(WAITING)
        while time.monotonic() < deadline:
            known = view.load()
            pods, there = self._pods(known), known.resolve(options.host)
            if len(pods) == options.nodes and there and there.key == pods[0].key:
                return there.key
            time.sleep(POLL_SECONDS)
        values = {**vars(options), "wanted": options.nodes, "joined": len(pods)}
        if there is None or 0 not in pods or there.key != pods[0].key:
            late = self._texts["timed_out"].format_map({**values, "after": f"{options.timeout * 1000}ms"})
            raise Failed(f"torch.distributed.DistNetworkError: {late}")
        few = self._texts["too_few"].format_map({**values, "after": options.timeout + 1})
        raise Failed(f"torch.distributed.DistStoreError: {few}")

    def catch_sigterm(self) -> None:
        """If the program saves before it stops, only records SIGTERM. Otherwise SIGTERM ends the process."""
        if self.program.get("stops_on_sigterm"):
            signal.signal(signal.SIGTERM, lambda number, _: self._signals.append(number))

    def publish(self, phase: str, **more: Any) -> None:
        """Publishes this agent's phase, NCCL settings, and `more`. Later calls keep the values of `more`."""
        self._more |= more
        environment = {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}
        files = topology.found_in(filter(None, [environment.get("NCCL_TOPO_FILE")]))
        own = {"launch": self._launch(), "rank": self.options.node_rank, "phase": phase}
        view.publish(DOCUMENT, {**self._more, **own, "nccl_conf": environment, "topologies": files})

    def check(self) -> list[Pod]:
        """Returns the pods in rank order. Raises Failed if a pod is gone or has failed."""
        known = view.load()
        pods = self._pods(known)
        for node in range(self.options.nodes):
            pod = pods.get(node)
            if pod is None or not known.node_of(pod)["ready"] or published(pod).get("phase") == FAILED:
                raise self._lost(node)
        return [pods[node] for node in range(self.options.nodes)]

    def connect(self) -> training.Ranks:
        """Waits until all agents have prepared the program. Then connects all GPUs by NCCL. Raises Failed."""
        while any(published(pod)["phase"] == WAITING for pod in self.check()):
            time.sleep(POLL_SECONDS)
        places = [(pod, index) for pod in self.check() for index in range(self.options.nproc_per_node)]
        return training.connect(places, dict(os.environ), nccl_log.Log(os.environ), self.program["cuda_error"])

    def stopped(self) -> bool:
        """Returns whether any node received SIGTERM. Raises Failed if a node is gone."""
        return bool(self._signals) or any(published(pod).get("stop") for pod in self.check())

    def show(self, folder: Path) -> None:
        """Waits until all nodes see a folder. Raises Failed."""
        number = self._more.get("folder", (0, ""))[0] + 1
        self.publish(STARTED, folder=(number, str(folder)))
        while any(published(pod).get("seen") != number for pod in self.check()[1:]):
            time.sleep(POLL_SECONDS)

    def follow(self, first: str) -> None:
        """Waits, on a node other than the first, until the first node has trained. Raises Failed if that node fails."""
        seen, begun = time.monotonic(), False
        while time.monotonic() - seen < END_SECONDS:
            known = view.load()
            pod = known.pods.get(first)
            state = published(pod) if pod else {}
            phase = state.get("phase")
            if pod and (phase == DONE or pod.facts["phase"] == "Succeeded"):
                return
            if phase == FAILED and state["code"] != 1:
                raise Failed(code=state["code"])  # the first node has printed why
            restarted = begun and phase == WAITING
            if pod is None or not pod.running or not known.node_of(pod)["ready"] or phase == FAILED or restarted:
                break
            if phase:  # without a phase, the process has ended, and the pod will report the result
                seen, begun = time.monotonic(), phase == STARTED
                self._answer(state)
            time.sleep(POLL_SECONDS)
        raise self._lost(0)

    def uncaught(self, error: Exception) -> Failed:
        values = {"host": view.load().me.hostname, "kind": type(error).__name__, "error": error}
        return Failed("\n".join(Values(self.program, values).lines("uncaught", {})))

    def _answer(self, first: Mapping[str, Any]) -> None:
        if self._signals and not self._more.get("stop"):
            self.publish(STARTED, stop=True)
        number, folder = first.get("folder", (0, ""))
        if number == self._more.get("seen", 0):
            return
        until = time.monotonic() + self.program["folder_wait_s"]
        while not Path(folder).exists():
            if time.monotonic() > until:
                raise self.uncaught(TimeoutError("Waiting for checkpoint directory timed out"))
            time.sleep(POLL_SECONDS)
        self.publish(STARTED, seen=number)

    def _launch(self) -> list[str]:
        return [self.options.rdzv_id, f"{self.options.host}:{self.options.port}"]

    def _pods(self, known: View) -> dict[int, Pod]:
        found = [pod for pod in known.pods.values() if pod.running and pod.namespace == known.me.namespace]
        return {published(pod)["rank"]: pod for pod in found if published(pod).get("launch") == self._launch()}

    def _lost(self, node: int) -> Failed:
        return Failed(self._texts["lost"].format(rank=node * self.options.nproc_per_node, node=node))


def published(pod: Pod) -> Mapping[str, Any]:
    return pod.published(DOCUMENT) or {}
