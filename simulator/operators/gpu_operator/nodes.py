"""Computes the GPU operator's node labels (v26.7.0, nodelabeling controller)."""

from __future__ import annotations

from collections.abc import Mapping

GPU_PRESENT = "nvidia.com/gpu.present"
OPERANDS = "nvidia.com/gpu.deploy.operands"
DEPLOY_DRIVER = "nvidia.com/gpu.deploy.driver"
DEPLOY_MIG_MANAGER = "nvidia.com/gpu.deploy.mig-manager"
DRIVER_PREINSTALLED = "pre-installed"
MIG_CAPABLE = "nvidia.com/mig.capable"
PRODUCT = "nvidia.com/gpu.product"
NFD_PREFIX = "feature.node.kubernetes.io/"
NFD_GPU_LABELS = tuple(f"{NFD_PREFIX}pci-{name}.present" for name in ("10de", "0302_10de", "0300_10de"))
STATE_LABELS = (
    DEPLOY_DRIVER,
    *(
        f"nvidia.com/gpu.deploy.{operand}"
        for operand in (
            "gpu-feature-discovery",
            "container-toolkit",
            "device-plugin",
            "dcgm",
            "dcgm-exporter",
            "node-status-exporter",
            "operator-validator",
            "client",
        )
    ),
)


def has_gpu(labels: Mapping[str, str]) -> bool:
    return any(labels.get(name) == "true" for name in NFD_GPU_LABELS)


def wanted_labels(labels: Mapping[str, str]) -> dict[str, str | None]:
    """Returns labels to set (None: remove). Keeps existing values, because the driver manager pauses operands there."""
    if not has_gpu(labels):
        present: dict[str, str | None] = {GPU_PRESENT: "false"} if labels.get(GPU_PRESENT) == "true" else {}
        return present | _removed(labels)
    wanted: dict[str, str | None] = {GPU_PRESENT: "true"}
    if labels.get(OPERANDS) == "false":
        return wanted | _removed(labels)
    wanted |= {name: "true" for name in STATE_LABELS if not labels.get(name)}
    if is_mig_capable(labels) and DEPLOY_MIG_MANAGER not in labels:
        wanted[DEPLOY_MIG_MANAGER] = "true"
    return wanted


def is_mig_capable(labels: Mapping[str, str]) -> bool:
    if MIG_CAPABLE in labels:
        return labels[MIG_CAPABLE] == "true"
    return any(model in labels.get(PRODUCT, "").lower() for model in ("h100", "a100", "a30"))


def _removed(labels: Mapping[str, str]) -> dict[str, str | None]:
    return {name: None for name in (*STATE_LABELS, DEPLOY_MIG_MANAGER) if name in labels}
