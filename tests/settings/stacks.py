"""What the engine hands to a program for a stack file, and workloads to put on stacks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.loader import load_settings
from config.models import Settings
from config.workload import Requirements, WorkloadOptions
from workloads.nccl_allreduce.options import NcclAllreduceOptions

ROOT = Path(__file__).resolve().parents[2]
H100 = "Standard_ND96isr_H100_v5"
T4 = "Standard_NC4as_T4_v3"


class TrainingOptions(WorkloadOptions):
    num_nodes: int = 1


@dataclass(frozen=True)
class Workload:
    name: str
    requires: Requirements
    options: type[WorkloadOptions] = WorkloadOptions

    def nodes(self, options: WorkloadOptions, pool_nodes: int) -> int:
        return getattr(options, "num_nodes", None) or pool_nodes


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("nccl-allreduce", Requirements(infiniband=True, scheduler="volcano"), NcclAllreduceOptions),
        Workload("training", Requirements(scheduler="volcano", min_nodes=2), TrainingOptions),
        Workload("notebook", Requirements()),
    )
}


def as_engine(stack: Mapping[str, Any]) -> dict[str, str]:
    """The keys of a stack file as Pulumi passes them on: scalars as text, everything else as JSON."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value)

    return {key if ":" in key else f"ai-on-aks:{key}": text(value) for key, value in stack.items()}


def load(stack: Mapping[str, Any], *, name: str = "dev", secret: tuple[str, ...] = ()) -> Settings:
    secret_keys = {f"ai-on-aks:{key}" for key in secret}
    return load_settings(as_engine(stack), "ai-on-aks", name, WORKLOADS, is_file=is_file, secret_keys=secret_keys)


def is_file(path: str) -> bool:
    return (ROOT / path).is_file()
