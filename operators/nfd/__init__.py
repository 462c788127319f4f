"""Node Feature Discovery: sets the labels by which both NVIDIA operators select nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pulumi_kubernetes as kubernetes

from components.operators import InstallContext, Installed, Operator
from config.data.scheduling import ANY_TAINT, GPU_LABEL, ON_SYSTEM_POOL
from config.data.skus import catalogue, pci_vendor
from config.problems.errors import Problem
from config.problems.fixes import remove_command
from config.schema.operators import NVIDIA_NAMESPACE, Capability, ChartSettings, Installation, key_of
from operators._lib.release import Values, release

NAME = "node-feature-discovery"
PCI_CLASSES = ["03", "0300", "0302", "0207"]
"""Display controllers and InfiniBand. The classes 02 and 0200 are excluded: every VM with accelerated networking has an
Ethernet function of vendor 15b3, and a label for it would install OFED on nodes without InfiniBand.
"""
NVIDIA, MELLANOX = pci_vendor("nvidia"), pci_vendor("mellanox")


class NodeFeatureDiscovery(Installed[ChartSettings]):
    """The release, a rule for GPUs, and a rule for InfiniBand."""

    def create(self, context: InstallContext, settings: ChartSettings) -> None:
        self.release = release(NAME, context, parent=self, values=values(), user_values=settings.values)
        self._rule("gpu", gpu_rule())
        self._rule("infiniband", infiniband_rule())

    def _rule(self, name: str, rule: dict[str, Any]) -> None:
        kubernetes.apiextensions.CustomResource(
            f"rule-{name}",
            api_version="nfd.k8s-sigs.io/v1alpha1",
            kind="NodeFeatureRule",
            metadata={"name": f"ai-on-aks-{name}"},
            spec={"rules": [rule]},
            opts=self.child(depends_on=[self.release]),
        )


def values() -> Values:
    pci = {"deviceClassWhitelist": PCI_CLASSES, "deviceLabelFields": ["vendor"]}
    return {
        "master": {**ON_SYSTEM_POOL, "config": {"extraLabelNs": ["nvidia.com"]}},
        "gc": ON_SYSTEM_POOL,
        "worker": {
            "nodeSelector": {GPU_LABEL: "true"},
            "tolerations": ANY_TAINT,
            "config": {"sources": {"pci": pci}},
        },
    }


def gpu_rule() -> dict[str, Any]:
    return _pci_rule("nvidia-gpu", NVIDIA, {"class": _in("0300", "0302")})


def infiniband_rule() -> dict[str, Any]:
    devices = {size.infiniband.device_id for size in catalogue().values() if size.infiniband}
    return _pci_rule("infiniband", MELLANOX, {"device": _in(*sorted(devices)), "class": _in("0207")})


def _pci_rule(name: str, vendor: str, expressions: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "labels": {f"feature.node.kubernetes.io/pci-{vendor}.present": "true"},
        "matchFeatures": [{"feature": "pci.device", "matchExpressions": {"vendor": _in(vendor), **expressions}}],
    }


def _in(*ids: str) -> dict[str, Any]:
    return {"op": "In", "value": list(ids)}


_OWN_LABELS: Capability = "node labels"


class _NodeFeatureDiscovery(Operator[ChartSettings]):
    name = NAME
    title = "Node Feature Discovery"
    summary = "Labels nodes by their hardware."
    namespace = NVIDIA_NAMESPACE
    settings = ChartSettings
    component = NodeFeatureDiscovery

    def provides(self, settings: ChartSettings) -> Mapping[Capability, str]:
        return {_OWN_LABELS: "feature.node.kubernetes.io"}

    def problems(self, installation: Installation) -> Iterator[Problem]:
        """Yields a problem if another chart also installs NFD: both would overwrite each other's node labels."""
        for other in installation.operators.values():
            if _OWN_LABELS in other.needs and installation.value(other, "nfd", "enabled") is True:
                path = ("operators", key_of(other.name), "values", "nfd", "enabled")
                what = f"is true, but operators.{key_of(self.name)} already installs {self.title}"
                yield Problem(path, what, "false, or not set", remove_command(path))


OPERATOR = _NodeFeatureDiscovery()
