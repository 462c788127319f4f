"""nfd-worker: keeps the NodeFeature object of its node."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from diagnosis.cluster import Object
from simulator.kube.client import ApiError
from simulator.kubelet.programs import PodContext
from simulator.operators._loop import owner_reference, reconcile
from simulator.operators.nfd.features import WorkerConfig, discover, parse_config
from simulator.world.nodes import hardware_of

API = "nfd.k8s-sigs.io/v1alpha1"
NODE_NAME_LABEL = "nfd.node.kubernetes.io/node-name"
CONFIG_FILE = "/etc/kubernetes/node-feature-discovery/nfd-worker.conf"
INTERVAL_S = 10.0  # the real one sleeps 60 s; a fault should show sooner here


def run(ctx: PodContext, stop: threading.Event) -> None:
    """The worker of one node, until told to stop."""
    config = parse_config((ctx.file(CONFIG_FILE) or b"").decode())
    for section in config.ignored:
        ctx.log(f"{section} of nfd-worker.conf has no effect: this source is not simulated")
    owners = owner_references(ctx.pod, argument(ctx.container, "-owner-refs", "pod,ds").split(","))
    if config.no_publish:
        stop.wait()
        return
    reconcile(ctx, stop, lambda: _publish(ctx, config, owners), INTERVAL_S)


def node_feature(ctx: PodContext, config: WorkerConfig, owners: Sequence[Object]) -> Object:
    """The object as it should be."""
    node = ctx.node["metadata"]["name"]
    return {
        "apiVersion": API,
        "kind": "NodeFeature",
        "metadata": {
            "name": node,
            "namespace": ctx.pod["metadata"]["namespace"],
            "labels": {NODE_NAME_LABEL: node},
            "ownerReferences": list(owners),
        },
        "spec": discover(hardware_of(ctx.node), config),
    }


def owner_references(pod: Object, wanted: Sequence[str]) -> list[Object]:
    """The pod itself and its DaemonSet: the object is collected when all of those named are gone."""
    owners = []
    if "pod" in wanted:
        owners.append(owner_reference({"apiVersion": "v1", "kind": "Pod", **pod}))
    if "ds" in wanted:
        of_pod = pod["metadata"].get("ownerReferences", [])
        keys = ("apiVersion", "kind", "name", "uid")
        owners += [{key: owner[key] for key in keys} for owner in of_pod if owner["kind"] == "DaemonSet"]
    return owners


def argument(container: Object, name: str, default: str = "") -> str:
    """The value of `-name=value` among the container's arguments."""
    for word in container.get("args", []):
        key, _, value = word.partition("=")
        if key == name:
            return str(value)
    return default


def publish(ctx: PodContext, wanted: Object) -> None:
    """Creates or corrects a NodeFeature with the rights that NFD's and GFD's roles give: get, create, update."""
    metadata = wanted["metadata"]
    found = ctx.kube.find(API, "NodeFeature", metadata["name"], metadata["namespace"])
    if found is None:
        ctx.kube.create(wanted)
        ctx.log(f"created NodeFeature {metadata['name']} with {len(wanted['spec']['labels'])} labels")
    elif found["spec"] != wanted["spec"] or found["metadata"].get("ownerReferences") != metadata["ownerReferences"]:
        version = found["metadata"]["resourceVersion"]
        ctx.kube.replace({**wanted, "metadata": {**metadata, "resourceVersion": version}})
        ctx.log(f"updated NodeFeature {metadata['name']}")


def _publish(ctx: PodContext, config: WorkerConfig, owners: Sequence[Object]) -> None:
    try:
        publish(ctx, node_feature(ctx, config, owners))
    except ApiError as error:
        if not error.conflict:  # someone else wrote at the same time: the next round sees it
            raise
