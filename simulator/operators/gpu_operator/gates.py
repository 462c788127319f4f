"""Readiness conditions of the GPU operator's pods.

The real init containers wait for files under /run, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

from k8s.objects import Object, is_ready
from simulator.kubelet.programs import PodContext
from simulator.operators._loop import labelled, set_labels
from simulator.operators.gpu_operator.nodes import DEPLOY_DRIVER, DRIVER_PREINSTALLED
from simulator.operators.gpu_operator.sharing import SharingError, sharing
from simulator.operators.network_operator.daemonsets import OFED_POD_LABEL
from simulator.world.nodes import MELLANOX, hardware_of, has_host_driver, nvidia_gpus

DRIVER_APP = "nvidia-driver-daemonset"
TOOLKIT_APP = "nvidia-container-toolkit-daemonset"
DEVICE_PLUGIN_APP = "nvidia-device-plugin-daemonset"
DRIVER_ROOT_FILE = "run/nvidia/driver/usr/bin/nvidia-smi"
"""The path on a node where the driver's pod mounts its root (gpu-operator v26.7.0, cmd/nvidia-validator/main.go)."""


def driver_gate(ctx: PodContext) -> str | None:
    """Emulates k8s-driver-manager. Rejects the driver if the node image has one. GPUDirect RDMA waits for OFED."""
    if has_host_driver(ctx.node):
        set_labels(ctx.kube, ctx.node, {DEPLOY_DRIVER: DRIVER_PREINSTALLED})
        return (
            "a driver is pre-installed on host (AKS gpuProfile.driver Install): the containerized driver is "
            "disabled on this node, and with it nvidia-peermem; make the pool with driver None to use the operator's"
        )
    env = ctx.env()
    if env.get("GPU_DIRECT_RDMA_ENABLED") == "true" and env.get("USE_HOST_MOFED") != "true":
        # Like the driver manager, counts all Mellanox functions, even the function for accelerated networking.
        has_nic = any(function.vendor == MELLANOX for function in hardware_of(ctx.node).pci)
        if has_nic and not any(is_ready(pod) for pod in labelled(ctx.pods_on_node(), OFED_POD_LABEL)):
            return "GPUDirectRDMA is enabled, waiting for MOFED to be installed"
    return None


def toolkit_gate(ctx: PodContext) -> str | None:
    return None if has_driver(ctx.node, ctx.pods_on_node()) else "waiting for the NVIDIA driver"


def runtime_gate(ctx: PodContext) -> str | None:
    pods = ctx.pods_on_node()
    if not has_driver(ctx.node, pods):
        return "waiting for the NVIDIA driver"
    return None if has_runtime(ctx.node, pods) else "waiting for nvidia container stack to be setup"


def device_plugin_gate(ctx: PodContext) -> str | None:
    """Waits like `runtime_gate`. The plugin also needs a valid configuration and a GPU (FAIL_ON_INIT_ERROR)."""
    if reason := runtime_gate(ctx):
        return reason
    try:
        sharing(ctx.node, ctx.env(), ctx.file, "")
    except SharingError as error:
        return str(error)
    return None if nvidia_gpus(hardware_of(ctx.node)) else "no NVIDIA GPU found on this node"


def validator_gate(ctx: PodContext) -> str | None:
    if reason := runtime_gate(ctx):
        return reason
    plugins = labelled(ctx.pods_on_node(), "app", DEVICE_PLUGIN_APP)
    return None if any(is_ready(pod) for pod in plugins) else "waiting for the device plugin"


def has_driver(node: Object, pods: Sequence[Object]) -> bool:
    return has_host_driver(node) or any(is_ready(pod) for pod in labelled(pods, "app", DRIVER_APP))


def has_runtime(node: Object, pods: Sequence[Object]) -> bool:
    """Returns whether the node has the container toolkit, in its image together with a driver, or by a ready pod."""
    return has_host_driver(node) or any(is_ready(pod) for pod in labelled(pods, "app", TOOLKIT_APP))
