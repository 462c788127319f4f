"""nfd-master: labels nodes by their NodeFeatures and the NodeFeatureRules; nfd-gc; the hook that takes labels back."""

from __future__ import annotations

import threading

from simulator.kubelet.programs import PodContext
from simulator.operators._loop import label, reconcile
from simulator.operators.nfd.labels import MasterConfig, Wanted, node_patch, parse_master_config, wanted
from simulator.operators.nfd.worker import API, NODE_NAME_LABEL

CONFIG_FILE = "/etc/kubernetes/node-feature-discovery/nfd-master.conf"
GC_INTERVAL_S = 5.0  # the real one watches nodes and sweeps every hour besides


def run_master(ctx: PodContext, stop: threading.Event) -> None:
    """Labels all nodes, until told to stop. As the real one, it may not watch nodes: each has a NodeFeature."""
    config = _config(ctx)
    told: set[str] = set()
    watched = ((API, "NodeFeature"), (API, "NodeFeatureRule"))
    reconcile(ctx, stop, lambda: _label_nodes(ctx, config, told), watched=watched)


def run_gc(ctx: PodContext, stop: threading.Event) -> None:
    """Deletes NodeFeatures of nodes that are gone, until told to stop."""
    reconcile(ctx, stop, lambda: _collect(ctx), GC_INTERVAL_S)


def prune(ctx: PodContext) -> None:
    """The post-delete hook: no node keeps a label or an annotation of NFD's."""
    config = _config(ctx)
    for node in ctx.kube.list("v1", "Node"):
        patch = node_patch(node, Wanted(), config)
        annotations = node["metadata"].get("annotations", {})
        ours = [name for name in annotations if name.startswith(f"{config.annotation_ns}/")]
        if patch or ours:
            metadata = patch.setdefault("metadata", {})
            metadata["annotations"] = metadata.get("annotations", {}) | dict.fromkeys(ours)
            ctx.kube.patch("v1", "Node", node["metadata"]["name"], None, patch)
        ctx.log(f"pruned node {node['metadata']['name']}")


def _config(ctx: PodContext) -> MasterConfig:
    flags = dict(word.partition("=")[::2] for word in ctx.container.get("args", []))
    return parse_master_config((ctx.file(CONFIG_FILE) or b"").decode(), flags)


def _label_nodes(ctx: PodContext, config: MasterConfig, told: set[str]) -> None:
    rule_objects = sorted(ctx.kube.list(API, "NodeFeatureRule"), key=lambda rule: str(rule["metadata"]["name"]))
    rules = [rule for obj in rule_objects for rule in obj["spec"]["rules"]]
    features = ctx.kube.list(API, "NodeFeature")
    own = ctx.pod["metadata"]["namespace"]
    features.sort(key=lambda obj: (obj["metadata"]["namespace"] != own, obj["metadata"]["name"]))
    for node in ctx.kube.list("v1", "Node"):
        name = node["metadata"]["name"]
        want = wanted([obj["spec"] for obj in features if label(obj, NODE_NAME_LABEL) == name], rules, config)
        for error in want.errors:
            if (line := f"node {name}: {error}") not in told:
                told.add(line)
                ctx.log(line)
        if patch := node_patch(node, want, config):
            ctx.kube.patch("v1", "Node", name, None, patch)
            ctx.log(f"node {name} updated")


def _collect(ctx: PodContext) -> None:
    nodes = {node["metadata"]["name"] for node in ctx.kube.list("v1", "Node")}
    for feature in ctx.kube.list(API, "NodeFeature"):
        if label(feature, NODE_NAME_LABEL) not in nodes:
            metadata = feature["metadata"]
            ctx.kube.delete(API, "NodeFeature", metadata["name"], metadata["namespace"])
            ctx.log(f"deleted NodeFeature {metadata['name']}: its node is gone")
