"""NVIDIA Network Operator: OFED drivers and the device plugin that offers InfiniBand HCAs to pods."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.images import repository
from components.operators import Installed, Site
from config.facts.scheduling import ANY_TAINT, SYSTEM_NODES, SYSTEM_TOLERATIONS
from config.facts.skus import pci_vendor
from config.facts.versions import versions
from config.schema.operators import DriverUpgrades
from operators._driver_changes import settings_of, told
from operators._driver_upgrades import upgrade_policy
from operators._release import Values, release
from operators.network_operator.settings import NetworkOperatorSettings

NAME = "network-operator"
POLICY = "nic-cluster-policy"
"""A singleton: the operator ignores any other name."""
_NOT_AWAITED = {"pulumi.com/skipAwait": "true"}
"""It is ready only once no node has a driver of an older template, which may be weeks. Programs before this one put
`pulumi.com/waitFor` on the live object, which Pulumi's provider heeds unless the inputs say this (overrides.go:108).
"""
_OFED = {
    # Compiling the driver takes up to 12 minutes (network-operator#318); the operator's own probes allow for 20.
    "forcePrecompiled": False,
    "terminationGracePeriodSeconds": 300,
    "startupProbe": {"initialDelaySeconds": 10, "periodSeconds": 20},
    "livenessProbe": {"initialDelaySeconds": 30, "periodSeconds": 30},
    "readinessProbe": {"initialDelaySeconds": 10, "periodSeconds": 30},
}


class NetworkOperator(Installed):
    """The release and its NicClusterPolicy."""

    def __init__(
        self,
        name: str,
        site: Site,
        settings: NetworkOperatorSettings,
        upgrades: DriverUpgrades,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        installed = release(
            NAME,
            site,
            parent=self,
            values=values(),
            user_values=settings.values,
            hooks=told("the operator of OFED", operator_made_of, upgrades),
        )
        policy = kubernetes.apiextensions.CustomResource(
            POLICY,
            api_version="mellanox.com/v1alpha1",
            kind="NicClusterPolicy",
            metadata={"name": POLICY, "annotations": _NOT_AWAITED},
            spec=policy_spec(settings, upgrades, site.settings.images.registry),
            opts=self.child(depends_on=[installed], hooks=told("OFED", ofed_made_of, upgrades)),
        )
        self.followed = self.policies = [policy]
        self.register_outputs({})


def operator_made_of(release: Mapping[str, Any]) -> dict[str, Any]:
    """What of a release's inputs is in the template of OFED's DaemonSet, which another version may word otherwise.

    Of its values, the image of an init container: state_ofed.go, getInitContainerConfig (network-operator v26.4.1).
    """
    operator = (release.get("values") or {}).get("operator") or {}
    return {"version of the chart": release.get("version"), "operator.ofedDriver": operator.get("ofedDriver")}


def ofed_made_of(policy: Mapping[str, Any]) -> dict[str, Any]:
    """What of a NicClusterPolicy is in that template (manifests/state-ofed-driver/0050_ofed-driver-ds.yaml)."""
    spec = policy["spec"]
    return {**settings_of(spec["ofedDriver"]), "tolerations": spec.get("tolerations")}


def values() -> Values:
    """Values of the chart. Its own feature rules match Ethernet functions too, which every AKS node has."""
    return {
        "nfd": {"enabled": False, "deployNodeFeatureRules": False},
        "operator": {"nodeSelector": SYSTEM_NODES, "tolerations": SYSTEM_TOLERATIONS},
    }


def policy_spec(settings: NetworkOperatorSettings, upgrades: DriverUpgrades, registry: str | None) -> dict[str, Any]:
    """The NicClusterPolicy: DOCA-OFED, and one SR-IOV device plugin. A second plugin would claim the same devices."""
    env = [{"name": name, "value": value} for name, value in sorted(settings.ofed_env.items())]
    return {
        "ofedDriver": {
            **_image("doca-driver", registry, settings.ofed_version),
            **_OFED,
            **({"env": env} if env else {}),
            "upgradePolicy": upgrade_policy(upgrades),
        },
        "sriovDevicePlugin": {
            **_image("sriov-network-device-plugin", registry),
            "config": json.dumps({"resourceList": [_resource(settings.rdma_resource)]}),
        },
        "tolerations": ANY_TAINT,
    }


def _resource(name: str) -> dict[str, Any]:
    # The link type keeps the VM's Ethernet function out.
    selectors = {"vendors": [pci_vendor("mellanox")], "linkTypes": ["infiniband"], "isRdma": True}
    return {"resourcePrefix": "nvidia.com", "resourceName": name, "selectors": selectors}


def _image(name: str, registry: str | None, version: str | None = None) -> dict[str, str]:
    return {
        "image": name,
        "repository": repository(name, registry),
        "version": version or versions().images[name].version,
    }
