"""Emulates gpu-feature-discovery (GFD), which creates a NodeFeature. NFD's master labels the node from it."""

from __future__ import annotations

import threading

from config.data.scheduling import GPU_RESOURCE
from config.data.skus import gpu_models
from k8s.objects import Object
from simulator.kubelet.programs import PodContext
from simulator.operators._loop import label, owner_reference, reconcile
from simulator.operators.gpu_operator.gates import DRIVER_APP
from simulator.operators.gpu_operator.sharing import Sharing, sharing
from simulator.world.hardware import NodeHardware
from simulator.world.nodes import hardware_of, nvidia_gpus

API = "nfd.k8s-sigs.io/v1alpha1"
NODE_NAME_LABEL = "nfd.node.kubernetes.io/node-name"
INTERVAL_S = 10.0  # the real GFD sleeps 60 s
MIB_PER_GB = 1024


def run(ctx: PodContext, stop: threading.Event) -> None:
    reconcile(ctx, stop, lambda: publish(ctx, node_feature(ctx)), INTERVAL_S)


def publish(ctx: PodContext, wanted: Object) -> None:
    """Creates or updates a NodeFeature. GFD's role permits only get, create and update."""
    metadata = wanted["metadata"]
    found = ctx.kube.find(API, "NodeFeature", metadata["name"], metadata["namespace"])
    if found is None:
        ctx.kube.create(wanted)
        ctx.log(f"created NodeFeature {metadata['name']} with {len(wanted['spec']['labels'])} labels")
    elif found["spec"] != wanted["spec"] or found["metadata"].get("ownerReferences") != metadata["ownerReferences"]:
        version = found["metadata"]["resourceVersion"]
        ctx.kube.replace({**wanted, "metadata": {**metadata, "resourceVersion": version}})
        ctx.log(f"updated NodeFeature {metadata['name']}")


def node_feature(ctx: PodContext) -> Object:
    node = ctx.node["metadata"]["name"]
    env, hardware = ctx.env(), hardware_of(ctx.node)
    product = next((gpu.product for gpu in nvidia_gpus(hardware)), "")
    shared = sharing(ctx.node, env, ctx.file, product)
    features: Object = {"flags": {}, "attributes": {}, "instances": {}}
    return {
        "apiVersion": API,
        "kind": "NodeFeature",
        "metadata": {
            "name": f"nvidia-features-for-{node}",
            "namespace": ctx.pod["metadata"]["namespace"],
            "labels": {NODE_NAME_LABEL: node},
            "ownerReferences": [owner_reference({"apiVersion": "v1", "kind": "Pod", **ctx.pod})],
        },
        "spec": {
            "features": features,
            "labels": labels(hardware, driver_version(ctx), env.get("MIG_STRATEGY", "single"), shared),
        },
    }


def driver_version(ctx: PodContext) -> str:
    """Returns the driver's version from its image's tag (`595.91.07-ubuntu24.04`). Empty without a driver pod."""
    for pod in ctx.pods_on_node():
        if label(pod, "app") == DRIVER_APP:
            tag: str = pod["spec"]["containers"][0]["image"].rpartition(":")[2]
            return tag.partition("-")[0]
    return ""


def labels(hardware: NodeHardware, driver: str, mig_strategy: str, shared: Sharing) -> dict[str, str]:
    """Returns GFD's labels for a node. Empty without a GPU.

    GPU sharing changes the labels of product, count and replicas (NVIDIA/k8s-device-plugin, internal/lm/resource.go and
    mig-strategy.go). Labels of partitions (memory, engines, slices) are not simulated.
    """
    gpus = nvidia_gpus(hardware)
    if not gpus:
        return {}
    first = gpus[0]
    found = {
        "gpu.count": str(len(gpus) * shared.partitions),
        "gpu.product": _product(first.product, shared),
        "gpu.replicas": str(shared.replicas),
        "gpu.sharing-strategy": "time-slicing" if shared.replicas > 1 else "none",
        "mps.capable": "false",
    }
    if not shared.partition:
        found["gpu.memory"] = str(first.memory_gb * MIB_PER_GB)
    if model := gpu_models().get(first.model):
        major, _, minor = model.compute.partition(".")
        found |= {"gpu.family": model.family, "gpu.compute.major": major, "gpu.compute.minor": minor}
        found["mig.capable"] = str(model.mig).lower()
        if model.mig:
            found["mig.strategy"] = mig_strategy
    for part, value in zip(("major", "minor", "revision"), driver.split("."), strict=False):
        found[f"cuda.driver-version.{part}"] = value
    if driver:
        found["cuda.driver-version.full"] = driver
    return {f"nvidia.com/{name}": value for name, value in sorted(found.items())}


def _product(name: str, shared: Sharing) -> str:
    """Returns the product's name. Partitions add `-MIG-<partition>`. Sharing without a new resource adds `-SHARED`."""
    parts = [name, *(["MIG", shared.partition] if shared.partition else [])]
    renamed = shared.resource != GPU_RESOURCE
    return "-".join([*parts, *(["SHARED"] if shared.replicas > 1 and not renamed else [])]).replace(" ", "-")
