"""Emulates a node's MIG manager. A label requests a partitioning of the GPUs. Another label shows the state.

The states are from NVIDIA/mig-parted (deployments and reconfigure_mig.go): first `pending` (`rebooting` if the change
needs a reset of the GPUs), then `success` or `failed`.
"""

from __future__ import annotations

import threading

from config.data.gpu_sharing import MIG_LABEL, MIG_STATE_LABEL, mig_profiles
from config.data.skus import gpu_models
from k8s.objects import Object
from simulator.kubelet.programs import PodContext
from simulator.operators._loop import label, reconcile, set_labels
from simulator.operators.gpu_operator.sharing import MIG_ANNOTATION
from simulator.world.nodes import hardware_of, nvidia_gpus

DISABLED = "all-disabled"


def run(ctx: PodContext, stop: threading.Event) -> None:
    reconcile(ctx, stop, lambda: step(ctx))


def step(ctx: PodContext) -> None:
    """Moves the node to its next state, unless the wanted configuration is applied or has failed."""
    name = ctx.node["metadata"]["name"]
    node = ctx.kube.find("v1", "Node", name) or ctx.node
    wanted, state = label(node, MIG_LABEL), label(node, MIG_STATE_LABEL)
    now = node["metadata"].get("annotations", {}).get(MIG_ANNOTATION, DISABLED)
    if wanted is None or (wanted == now and state == "success"):
        return
    if wanted != now and (problem := _problem(ctx, node, wanted, now)):
        if state != "failed":
            ctx.log(f"MIG config {wanted}: {problem}")
            set_labels(ctx.kube, node, {MIG_STATE_LABEL: "failed"})
        return
    if wanted != now and state not in ("pending", "rebooting"):
        reboots = _changes_mode(wanted, now) and _needs_reset(node)
        set_labels(ctx.kube, node, {MIG_STATE_LABEL: "rebooting" if reboots else "pending"})
        return
    ctx.kube.patch("v1", "Node", name, None, {"metadata": {"annotations": {MIG_ANNOTATION: wanted}}})
    set_labels(ctx.kube, node, {MIG_STATE_LABEL: "success"})
    ctx.log(f"Successfully updated to MIG config: {wanted}")


def _problem(ctx: PodContext, node: Object, wanted: str, now: str) -> str:
    """Returns an error or an empty string. Custom configurations are not simulated."""
    gpus = nvidia_gpus(hardware_of(node))
    if wanted != DISABLED and not any(wanted in mig_profiles(gpu.product) for gpu in gpus):
        return "the GPUs of this node do not have it (or it is not simulated)"
    if _changes_mode(wanted, now) and _needs_reset(node) and ctx.env().get("WITH_REBOOT") != "true":
        return "the GPUs need a reset for another mode, which a VM cannot give them: set WITH_REBOOT=true"
    return ""


def _changes_mode(wanted: str, now: str) -> bool:
    return DISABLED in (wanted, now)


def _needs_reset(node: Object) -> bool:
    """Only A100 needs a reset to turn MIG on or off (NVIDIA's MIG User Guide, deployment considerations).

    A VM cannot reset a GPU (inferred).
    """
    models = gpu_models()
    return any(models[gpu.model].family == "ampere" for gpu in nvidia_gpus(hardware_of(node)) if gpu.model in models)
