"""Conditions of GPU nodes: read from their file, and what is made of them for a VM size. Pure."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from config.data.scheduling import CONDITION_PREFIX
from config.data.skus import VmSku, gpu_models

CHECKS = "/opt/checks"
"""Where the image has the scripts."""
TIMEOUT_S = 25
"""Of a check: nvidia-smi, which loads the driver's state anew at each call, takes seconds."""
MESSAGE_BYTES = 256
REMAPPED_SINCE = 8.0
"""Compute capability of Ampere, the first whose rows can be remapped (NVIDIA, GPU memory error management). Of sizes
with several GPUs, those before it have no NVLink.
"""
_FILE = Path(__file__).with_name("conditions.yaml")


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Well(_Data):
    """What a condition says while there is no problem."""

    reason: str
    message: str


class AlertRule(_Data):
    """When who looks after nodes is told."""

    severity: Literal["info", "warning", "critical"]
    lasts: str
    """How long the problem must be there first, as Prometheus has it: 2m."""


class NodeCondition(_Data):
    """One of them."""

    check: str
    every_s: int
    where: Literal["all", "remapping", "nvlink", "infiniband", "ofed"]
    ok: Well
    alert: AlertRule
    means: str
    do: str


@functools.cache
def conditions() -> dict[str, NodeCondition]:
    """By name: the reason while there is a problem, and the end of the condition's type."""
    read = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return TypeAdapter(dict[str, NodeCondition]).validate_python(read)


def condition_type(name: str) -> str:
    """As nodes have it. AKS's node-problem-detector has names without a prefix, so neither writes over the other's."""
    return f"{CONDITION_PREFIX}{name}"


def of_size(sku: VmSku, *, ofed: bool) -> dict[str, NodeCondition]:
    """Those that nodes of the size can have; `ofed` is whether ours is installed on them."""
    remaps = float(gpu_models()[sku.gpu_model].compute) >= REMAPPED_SINCE
    fits = {
        "all": True,
        "remapping": remaps,
        "nvlink": sku.gpus > 1 and remaps,
        "infiniband": sku.infiniband is not None,
        "ofed": sku.infiniband is not None and ofed,
    }
    return {name: each for name, each in conditions().items() if fits[each.where]}


def configurations(sku: VmSku, *, ofed: bool) -> dict[str, str]:
    """Files of node-problem-detector, by name: one for each condition.

    A monitor tells all conditions of its file with each result, those that it has not looked at yet as False
    (pkg/custompluginmonitor/custom_plugin_monitor.go of v1.34.0, generateStatus): so each has one of its own.
    """
    found = sorted(of_size(sku, ofed=ofed).items())
    return {f"{name}.json": json.dumps(_monitor(name, each, sku), indent=1) for name, each in found}


def _monitor(name: str, each: NodeCondition, sku: VmSku) -> dict[str, Any]:
    infiniband = sku.infiniband
    ports = {"hcas": infiniband.hcas, "gbps": infiniband.gbps} if infiniband else {}
    script, *arguments = each.check.format(gpus=sku.gpus, **ports).split()
    kind = condition_type(name)
    return {
        "plugin": "custom",
        "pluginConfig": {
            "invoke_interval": f"{each.every_s}s",
            "timeout": f"{TIMEOUT_S}s",
            "max_output_length": MESSAGE_BYTES,
            "concurrency": 1,
            "enable_message_change_based_condition_update": True,
            "skip_initial_status": True,  # nobody has looked yet
        },
        "source": "ai-on-aks-node-problem-detector",
        "metricsReporting": False,
        "conditions": [{"type": kind, "reason": each.ok.reason, "message": each.ok.message}],
        "rules": [
            {"type": "permanent", "condition": kind, "reason": name, "path": f"{CHECKS}/{script}", "args": arguments}
        ],
    }
