"""Readiness of the network operator's pods: device plugins need a valid configuration."""

from __future__ import annotations

from collections.abc import Callable

from simulator.kubelet.programs import PodContext
from simulator.operators.device_plugins import (
    SHARED_CONFIG,
    SRIOV_CONFIG,
    PluginConfigError,
    Pool,
    shared_pools,
    sriov_pools,
)

OFED_IMAGE = "doca-driver"
OFED_READY_FILE = "run/mellanox/drivers/.driver-ready"
"""A node has this file while OFED is loaded (gpu-operator v26.7.0, cmd/nvidia-validator/main.go, MOFED)."""


def sriov_gate(ctx: PodContext) -> str | None:
    return _gate(ctx, SRIOV_CONFIG, sriov_pools)


def shared_gate(ctx: PodContext) -> str | None:
    return _gate(ctx, SHARED_CONFIG, shared_pools)


def _gate(ctx: PodContext, file: str, parse: Callable[[bytes | None], list[Pool]]) -> str | None:
    try:
        parse(ctx.file(file))
    except PluginConfigError as error:
        return f"{file}: {error}"
    return None
