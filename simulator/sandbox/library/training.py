"""The common part of all simulated trainings: connects the ranks, and simulates each step on the current hardware."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simulator.sandbox.library import nccl, nccl_net, nccl_tests, view
from simulator.sandbox.library.nccl_log import Log, Process, pause
from simulator.sandbox.library.recipe import Failed, Values
from simulator.world import network
from simulator.world.network import INFINIBAND, SOCKET, Collective

RESERVED = 0.1  # share of a GPU's memory for CUDA, NCCL and fragmentation
NCCL_ERROR = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp"
GPU_FAILURE = "CUDA error: unspecified launch failure"


@dataclass(frozen=True)
class Ranks:
    """All ranks of a training with their GPUs, and their communicator."""

    devices: Sequence[nccl.Device]
    variables: Mapping[str, str]
    collective: Collective
    cuda_error: str

    @property
    def gpu_bytes(self) -> float:
        return min(float(device.gpu["memory_gb"]) for device in self.devices) * 1e9

    def check_memory(self, needed: float, kind: str) -> None:
        """Raises Failed with torch's message if a GPU has too little memory. `kind` is the class of the exception."""
        if (short := needed - self.gpu_bytes * (1 - RESERVED)) > 0:
            raise Failed(
                f"{kind}: CUDA out of memory. Tried to allocate {max(short / 2**30, 0.02):.2f} GiB. GPU 0 has a total "
                f"capacity of {self.gpu_bytes / 2**30:.2f} GiB of which 0 bytes is free. "
                f"(simulator: it needs {needed / 1e9:.0f} GB)"
            )

    def seconds(self, flops: float) -> float:
        """Returns the duration of a step. Raises Failed if a node, GPU or link has failed since the start."""
        known = view.load()
        for device in self.devices:
            rank, pod = device.process.rank, known.pods.get(device.pod.key)
            if pod is None or not pod.running or not known.node_of(pod)["ready"]:
                raise Failed(f"{NCCL_ERROR}, {nccl.REMOTE_ERROR}", rank)
            if device.gpu["index"] not in {gpu["index"] for gpu in known.gpus_of(pod) if gpu["healthy"]}:
                raise Failed(f"{self.cuda_error}: {GPU_FAILURE}", rank)
        by_pod = nccl.environments([device.pod for device in self.devices], self.variables)
        networks = [nccl_net.choose(known, known.pods[key], variables) for key, variables in by_pod.items()]
        transport = SOCKET if any(found.transport == SOCKET for found in networks) else INFINIBAND
        now = replace(self.collective, transport=transport, links=tuple(found.speeds for found in networks))
        if any(len(new) < len(old) for new, old in zip(now.links, self.collective.links, strict=True)):
            raise Failed(f"{NCCL_ERROR}, {nccl.REMOTE_ERROR}")
        return seconds(flops, now, view.numbers())


def connect(places: Sequence[tuple[view.Pod, int]], variables: Mapping[str, str], log: Log, cuda_error: str) -> Ranks:
    """Connects the ranks. Each place is a rank's pod and the index of a GPU. Raises Failed for a broken GPU or link."""
    known, devices = view.load(), list[nccl.Device]()
    for rank, (pod, index) in enumerate(places):
        gpus = nccl_tests.visible(known.gpus_of(pod), variables)
        if index >= len(gpus):
            what = "no CUDA-capable device is detected" if not gpus else "CUDA error: invalid device ordinal"
            raise Failed(f"{cuda_error}: {what}", rank)
        if not gpus[index]["healthy"]:
            raise Failed(f"{cuda_error}: {GPU_FAILURE}", rank)
        devices.append(nccl.Device(Process(rank, pod.hostname, 60 + index, index), pod, gpus[index]))
    try:
        collective = nccl.initialise(devices, variables, known, log).connect(log)
    except nccl.NcclError as error:
        raise Failed(f"{NCCL_ERROR}, {error}, {nccl.VERSION}") from error
    return Ranks(devices, variables, collective, cuda_error)


def seconds(flops: float, collective: Collective, numbers: Mapping[str, Any]) -> float:
    """Returns the duration of a step in seconds. If the network is degraded, the exchange between nodes is slower."""
    sku = numbers["skus"][collective.sku]
    healthy = flops / (collective.ranks * sku["tflops"] * 1e12 * numbers["training_mfu"])
    if collective.nodes == 1:
        return float(healthy)
    full = ((1.0,) * sku["hcas"],) * collective.nodes
    best = network.peak(replace(collective, links=full, transport=INFINIBAND, aligned=True), numbers)
    slower = max(1.0, best / network.peak(collective, numbers))
    return float(healthy * (1 + numbers["training_exchange"] * (slower - 1)))


@dataclass
class Training:
    """One training, from the step after `first` to step `last`. Subclasses print other lines or write files."""

    values: Values
    last: int
    tokens: float
    """Tokens per step, over all GPUs."""
    gpus: int
    first: int = 0
    log_steps: int = 1
    save_steps: int = 0
    loss: tuple[float, float] = (11.0, 0.0)
    """The loss before the first step and at the end."""
    write: Callable[[str], None] = print
    elapsed: float = 0

    def say(self, point: str, **values: Any) -> None:
        for line in self.values.lines(point, {"elapsed": self.elapsed, **values}):
            self.write(line)

    def log(self, step: int, took: float) -> None:
        """Prints the numbers of a step. The line of a process's first step has no speed."""
        self.say("first" if step == self.first + 1 else "step", **self.numbers(step, took))

    def numbers(self, step: int, took: float) -> dict[str, float]:
        """Returns the numbers of a step. The loss depends only on the step."""
        before, end = self.loss
        shrinks = (1 + step) ** -0.5
        loss = {"step": step, "loss": end + (before - end) * shrinks, "gradient": 1 + shrinks}
        return {**loss, "seconds": took, "tokens": self.tokens}

    def save(self, step: int) -> None:
        """Writes a checkpoint."""

    def run(self, seconds: Callable[[], float], stopped: Callable[[], bool] = lambda: False) -> int | None:
        """Simulates all steps. Returns the saved step if the training was stopped, otherwise None.

        `seconds` returns the next step's duration, or raises Failed.
        """
        recipe, since, count = self.values.recipe, 0.0, 0
        for step in range(self.first + 1, self.last + 1):
            took = seconds()
            faster = recipe.get("faster", 1) if step - self.first <= recipe.get("fast_steps", math.inf) else 1
            pause(min(took / faster, recipe.get("longest_s", math.inf)))
            self.elapsed += took
            since, count = since + took, count + 1
            if step % self.log_steps == 0 or step == self.last:
                self.log(step, since / count)
                since, count = 0.0, 0
            stop = stopped()
            if stop or (self.save_steps and (step % self.save_steps == 0 or step == self.last)):
                self.save(step)
            if stop:
                return step
        return None
