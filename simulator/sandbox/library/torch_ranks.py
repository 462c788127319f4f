"""The ranks of a simulated program under torchrun: their communicator, and how it ends where they have none."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NoReturn

from simulator.sandbox.library import nccl, nccl_log, training, view
from simulator.sandbox.library.torch_agents import ProgramError, Team
from simulator.world.network import Collective


@dataclass(frozen=True)
class Communicator:
    """All ranks of a training."""

    collective: Collective
    pods: tuple[str, ...]
    """Their keys."""
    per_node: int
    gpu_bytes: float
    """Memory of the smallest GPU."""

    @property
    def ranks(self) -> int:
        return len(self.pods) * self.per_node

    def seconds(self, update: training.Update, mfu: float | None = None) -> float:
        """Of an update on the links as they are now, where nothing slows it down at that utilisation."""
        known = view.load()
        by_pod = {key: known.pods[key].nccl_files.get("nccl_conf", {}) for key in self.pods}
        now = training.at_present(self.collective, known, by_pod)
        return training.seconds(update, now, view.numbers(), mfu)


def initialise(team: Team) -> Communicator:
    """NCCL over all GPUs of all nodes. Raises AgentError, and ProgramError for what is wrong with a GPU or a link."""
    known, pods, per_node = view.load(), team.check(), team.launch.per_node
    devices = []
    for node, pod in enumerate(pods):
        gpus = known.gpus_of(pod)
        if len(gpus) < per_node:
            refuse("torch.AcceleratorError", "CUDA error: invalid device ordinal")
        for local, gpu in enumerate(gpus[:per_node]):
            if not gpu["healthy"]:
                refuse(
                    "torch.AcceleratorError", f"CUDA error: unspecified launch failure (GPU {local} of {pod.hostname})"
                )
            process = nccl_log.Process(node * per_node + local, pod.hostname, 200 + local, local)
            devices.append(nccl.Device(process, pod, gpu))
    try:
        nccls = nccl_log.Log(os.environ)
        collective = nccl.initialise(devices, dict(os.environ), known, nccls).connect(nccls)
    except nccl.NcclError as error:
        refuse("torch.distributed.DistBackendError", f"NCCL error in: ProcessGroupNCCL.cpp:3690, {error}")
    gpu_bytes = min(float(device.gpu["memory_gb"]) for device in devices) * 1e9
    return Communicator(collective, tuple(pod.key for pod in pods), per_node, gpu_bytes)


def refuse(kind: str, text: str) -> NoReturn:
    """Ends the program by an exception of that kind."""
    print(f"{kind}: {text}", flush=True)
    raise ProgramError(text)
