"""NVIDIA Network Operator: OFED drivers and the device plugin that offers InfiniBand HCAs to pods."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components import images
from components._base import Component
from components.operators._release import Site, Values, release
from components.operators.nfd import MELLANOX
from components.operators.readiness import CustomResourceName, once_ready
from config.models import NetworkOperator as Settings
from config.scheduling import GPU_RESOURCE_TOLERATION, SYSTEM_NODES, SYSTEM_TOLERATIONS, tolerations
from config.versions import versions

NAME = "network-operator"
POLICY = CustomResourceName("mellanox.com/v1alpha1", "NicClusterPolicy", "nic-cluster-policy")
"""A singleton: the operator ignores any other name."""


class NetworkOperator(Component):
    """The release and its NicClusterPolicy."""

    def __init__(
        self,
        name: str,
        site: Site,
        settings: Settings,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        self.release = release(NAME, site, parent=self, values=values(), user_values=settings.values)
        self.policy = kubernetes.apiextensions.CustomResource(
            POLICY.name,
            api_version=POLICY.api_version,
            kind=POLICY.kind,
            metadata={"name": POLICY.name},
            spec=policy_spec(settings, site.taints, site.registry),
            opts=self.child(depends_on=[self.release]),
        )
        self.register_outputs({})

    def ready(self, after: list[pulumi.Resource]) -> pulumi.Resource:
        """Done when every node with InfiniBand has its driver and device plugin; `after` is what makes those nodes."""
        return once_ready(POLICY, parent=self, depends_on=[self.policy, *after])


def values() -> Values:
    """Values of the chart. Its own feature rules match Ethernet functions too, which every AKS node has."""
    return {
        "nfd": {"enabled": False, "deployNodeFeatureRules": False},
        "operator": {"nodeSelector": SYSTEM_NODES, "tolerations": SYSTEM_TOLERATIONS},
    }


def policy_spec(settings: Settings, taints: Iterable[str], registry: str | None) -> dict[str, Any]:
    """The NicClusterPolicy: DOCA-OFED, and one SR-IOV device plugin. A second plugin would claim the same devices."""
    return {
        "ofedDriver": {
            **_image("doca-driver", registry, settings.ofed_version),
            **_ofed(drain=settings.drain_on_upgrade),
        },
        "sriovDevicePlugin": {
            **_image("sriov-network-device-plugin", registry),
            "config": json.dumps({"resourceList": [_resource(settings.rdma_resource)]}),
        },
        # The operator's own tolerate this one only, and this list replaces it.
        "tolerations": [GPU_RESOURCE_TOLERATION, *tolerations(taints)],
    }


def _resource(name: str) -> dict[str, Any]:
    # The link type keeps the VM's Ethernet function out.
    selectors = {"vendors": [MELLANOX], "linkTypes": ["infiniband"], "isRdma": True}
    return {"resourcePrefix": "nvidia.com", "resourceName": name, "selectors": selectors}


def _ofed(*, drain: bool) -> dict[str, Any]:
    # Compiling the driver takes up to 12 minutes (network-operator#318); the operator's own probes allow for 20.
    return {
        "forcePrecompiled": False,
        "terminationGracePeriodSeconds": 300,
        "startupProbe": {"initialDelaySeconds": 10, "periodSeconds": 20},
        "livenessProbe": {"initialDelaySeconds": 30, "periodSeconds": 30},
        "readinessProbe": {"initialDelaySeconds": 10, "periodSeconds": 30},
        # A driver is reloaded under the pods of its node: not by itself, and not by killing jobs, unless asked for.
        "upgradePolicy": {
            "autoUpgrade": drain,
            "maxParallelUpgrades": 1,
            "safeLoad": False,
            "drain": {"enable": drain, "force": drain, "deleteEmptyDir": drain, "timeoutSeconds": 300},
        },
    }


def _image(name: str, registry: str | None, version: str | None = None) -> dict[str, str]:
    return {
        "image": name,
        "repository": images.repository(name, registry),
        "version": version or versions().images[name].version,
    }
