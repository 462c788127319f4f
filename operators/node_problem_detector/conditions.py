"""Conditions of GPU nodes, read from their file, and the configuration of each VM size."""

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
TIMEOUT_S = 25
"""The timeout of a check. nvidia-smi takes seconds, because each call loads the driver's state."""
MESSAGE_BYTES = 256
REMAPPED_SINCE = 8.0
"""The compute capability of Ampere, the first architecture with row remapping (NVIDIA, GPU memory error management).
Older VM sizes with several GPUs have no NVLink.
"""
_FILE = Path(__file__).with_name("conditions.yaml")


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Healthy(_Data):
    """The reason and message of a condition without a problem."""

    reason: str
    message: str


class AlertRule(_Data):
    """The settings of a condition's alert."""

    severity: Literal["info", "warning", "critical"]
    lasts: str


class NodeCondition(_Data):
    check: str
    every_s: int
    where: Literal["all", "remapping", "nvlink", "infiniband", "ofed"]
    ok: Healthy
    alert: AlertRule
    means: str
    do: str


@functools.cache
def conditions() -> dict[str, NodeCondition]:
    """Returns the conditions by name. The name is a problem's reason and the suffix of the condition's type."""
    read = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return TypeAdapter(dict[str, NodeCondition]).validate_python(read)


def condition_type(name: str) -> str:
    """Returns a condition type. The prefix prevents conflicts with the types of AKS's node-problem-detector."""
    return f"{CONDITION_PREFIX}{name}"


def conditions_of(sku: VmSku, *, ofed: bool) -> dict[str, NodeCondition]:
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
    """Returns configuration files of node-problem-detector by name, one for each condition.

    If a file had several conditions, the first result would report all others as False, although they are not checked
    yet (pkg/custompluginmonitor/custom_plugin_monitor.go of v1.34.0, generateStatus).
    """
    found = sorted(conditions_of(sku, ofed=ofed).items())
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
            "skip_initial_status": True,  # the node is not checked yet
        },
        "source": "ai-on-aks-node-problem-detector",
        "metricsReporting": False,
        "conditions": [{"type": kind, "reason": each.ok.reason, "message": each.ok.message}],
        "rules": [
            {"type": "permanent", "condition": kind, "reason": name, "path": f"{CHECKS}/{script}", "args": arguments}
        ],
    }
