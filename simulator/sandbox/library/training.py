"""Simulates a training: its ranks, the duration of each step on the current hardware, and failures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from simulator.sandbox.library import nccl, nccl_net, nccl_tests, recipe, view
from simulator.sandbox.library.nccl_log import Log, Process, pause
from simulator.sandbox.library.recipe import Failed, Recipe
from simulator.world import network
from simulator.world.network import INFINIBAND, SOCKET, Collective

RESERVED = 0.1  # the share of a GPU's memory for CUDA, NCCL and fragmentation
NCCL_ERROR = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp"
GPU_FAILURE = "CUDA error: unspecified launch failure"


@dataclass(frozen=True)
class Update:
    """The cost of one update of the weights, over all GPUs."""

    flops: float
    exchanged: float = 0
    """Bytes of weights and gradients that each node exchanges with the others."""
    misplaced: float = 0
    """Bytes that cross nodes because a model-parallel group does. A well-placed training has none."""


@dataclass(frozen=True)
class Ranks:
    """All ranks of a training, each with its GPU, and their communicator."""

    devices: Sequence[nccl.Device]
    variables: Mapping[str, str]
    collective: Collective

    @property
    def gpu_bytes(self) -> float:
        """The memory of the smallest GPU."""
        return min(float(device.gpu["memory_gb"]) for device in self.devices) * 1e9

    def check_memory(self, needed: float, kind: str) -> None:
        """Raises Failed with torch's text for an exception of that kind if a GPU lacks memory."""
        if (short := needed - self.gpu_bytes * (1 - RESERVED)) > 0:
            raise Failed(
                f"{kind}: CUDA out of memory. Tried to allocate {max(short / 2**30, 0.02):.2f} GiB. GPU 0 has a total "
                f"capacity of {self.gpu_bytes / 2**30:.2f} GiB of which 0 bytes is free. "
                f"(simulator: it needs {needed / 1e9:.0f} GB)"
            )

    def seconds(self, update: Update, mfu: float | None = None) -> float:
        """Returns the duration of an update on the links in their current state."""
        return seconds(update, self._now(view.load()), view.numbers(), mfu)

    def check(self, cuda_error: str) -> None:
        """Raises Failed if a node, a GPU or a link has failed since."""
        known = view.load()
        for device in self.devices:
            rank, pod = device.process.rank, known.pods.get(device.pod.key)
            if pod is None or not pod.running or not known.node_of(pod)["ready"]:
                raise Failed(f"{NCCL_ERROR}, {nccl.REMOTE_ERROR}", rank)
            gpu = next((found for found in known.gpus_of(pod) if found["index"] == device.gpu["index"]), None)
            if gpu is None or not gpu["healthy"]:
                raise Failed(f"{cuda_error}: {GPU_FAILURE}", rank)
        if any(len(now) < len(then) for now, then in zip(self._now(known).links, self.collective.links, strict=True)):
            raise Failed(f"{NCCL_ERROR}, {nccl.REMOTE_ERROR}")

    def _now(self, known: view.View) -> Collective:
        by_pod = nccl.environments([device.pod for device in self.devices], self.variables)
        networks = [nccl_net.choose(known, known.pods[key], variables) for key, variables in by_pod.items()]
        transport = SOCKET if any(found.transport == SOCKET for found in networks) else INFINIBAND
        return replace(self.collective, transport=transport, links=tuple(found.speeds for found in networks))


def connect(places: Sequence[tuple[view.Pod, int]], variables: Mapping[str, str], log: Log, cuda_error: str) -> Ranks:
    """Connects ranks with a pod and a GPU of it each. Raises Failed for a GPU or a link that does not work."""
    known, devices = view.load(), list[nccl.Device]()
    for rank, (pod, index) in enumerate(places):
        gpus = nccl_tests.visible(known.gpus_of(pod), variables)
        if index >= len(gpus):
            what = "no CUDA-capable device is detected" if not gpus else "CUDA error: invalid device ordinal"
            raise Failed(f"{cuda_error}: {what}", rank)
        if not gpus[index]["healthy"]:
            raise Failed(f"{cuda_error}: {GPU_FAILURE}", rank)
        if (other := places.index((pod, index))) != rank:
            who = f"rank {rank} and rank {other} both on CUDA device {gpus[index]['pci']}"
            raise Failed(f"{NCCL_ERROR}, invalid usage. Duplicate GPU detected : {who}", rank)
        devices.append(nccl.Device(Process(rank, pod.hostname, 60 + index, index), pod, gpus[index]))
    try:
        collective = nccl.initialise(devices, variables, known, log).connect(log)
    except nccl.NcclError as error:
        raise Failed(f"{NCCL_ERROR}, {error}, {nccl.VERSION}") from error
    return Ranks(devices, variables, collective)


def seconds(update: Update, collective: Collective, numbers: Mapping[str, Any], mfu: float | None = None) -> float:
    """Returns the duration of an update. The utilisation is that of healthy trainings and includes their exchange."""
    sku = numbers["skus"][collective.sku]
    arithmetic = update.flops / (collective.ranks * sku["tflops"] * 1e12 * (mfu or numbers["training_mfu"]))
    if collective.nodes == 1:
        return float(arithmetic)
    now = network.peak(collective, numbers) * 1e9
    full = ((1.0,) * sku["hcas"],) * collective.nodes
    healthy = network.peak(replace(collective, links=full, transport=INFINIBAND, aligned=True), numbers) * 1e9
    added = update.exchanged * (1 / now - 1 / healthy) + update.misplaced / now
    return float(arithmetic + max(0.0, added))


@dataclass
class Training:
    """One training, from the step after `first` to the `last`. Subclasses override methods for other lines or files."""

    recipe: Recipe
    last: int
    tokens: float
    """Tokens of a step, over all GPUs."""
    gpus: int
    first: int = 0
    log_steps: int = 1
    save_steps: int = 0
    loss: tuple[float, float] = (11.0, 0.0)
    """The loss before the first step, and at the end."""
    values: dict[str, Any] = field(default_factory=dict)
    """Values for the recipe's lines, in addition to the numbers of a step."""
    write: Callable[[str], None] = print
    elapsed: float = 0

    def say(self, name: str, **values: Any) -> None:
        """Prints the recipe's lines of that name."""
        for line in recipe.lines(self.recipe, name, {**self.values, "elapsed": self.elapsed, **values}):
            self.write(line)

    def log(self, step: int, took: float) -> None:
        """Prints the numbers of a step. The first one of a process has no speed."""
        self.say("first" if step == self.first + 1 else "step", **self.numbers(step, took))

    def numbers(self, step: int, took: float) -> dict[str, float]:
        """Returns the numbers of a step. The loss depends on the step only, so a resumed training has the same loss."""
        before, end = self.loss
        shrinks = (1 + step) ** -0.5
        rate = self.tokens / took
        return {
            "step": step,
            "loss": end + (before - end) * shrinks,
            "gradient": 1 + shrinks,
            "tokens": self.tokens,
            "seen_tokens": step * self.tokens,
            "seconds": took,
            "rate": rate,
            "rate_per_gpu": rate / self.gpus,
            "steps_per_s": 1 / took,
        }

    def save(self, step: int) -> None:
        """Writes a checkpoint."""

    def saves(self, step: int) -> bool:
        return bool(self.save_steps) and (step % self.save_steps == 0 or step == self.last)

    def wait(self, took: float, step: int) -> None:
        """Waits for a step, but less long than it would take."""
        fast = step - self.first <= self.recipe.get("fast_steps", math.inf)
        pause(min(took / (self.recipe.get("faster", 1) if fast else 1), self.recipe.get("longest_s", math.inf)))


def play(training: Training, seconds: Callable[[], float], stopped: Callable[[], bool] = lambda: False) -> int | None:
    """Simulates all steps. Returns the step that was saved if the training was asked to stop, otherwise None.

    `seconds` returns the duration of the next step, and raises Failed for a failure.
    """
    since, count = 0.0, 0
    for step in range(training.first + 1, training.last + 1):
        took = seconds()
        training.wait(took, step)
        training.elapsed += took
        since, count = since + took, count + 1
        if step % training.log_steps == 0 or step == training.last:
            training.log(step, since / count)
            since, count = 0.0, 0
        stop = stopped()
        if stop or training.saves(step):
            training.save(step)
        if stop:
            return step
    return None
