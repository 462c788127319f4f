"""NVIDIA Network Operator: OFED drivers, and the device plugin that advertises InfiniBand HCAs to pods."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pulumi_kubernetes as kubernetes

from components.images import repository
from components.operators import InstallContext, Installed, Operator
from config.data.scheduling import ANY_TAINT, ON_SYSTEM_POOL
from config.data.skus import pci_vendor
from config.data.versions import versions
from config.problems.errors import Problem
from config.schema.models import StackFile
from config.schema.operators import NVIDIA_NAMESPACE, Capability, DriverUpgrades, Installation
from operators._lib.drivers import change_hook, settings_of, upgrade_policy
from operators._lib.release import Values, release
from operators.network_operator.settings import NetworkOperatorSettings, autoscaler_problems

NAME = "network-operator"
POLICY = "nic-cluster-policy"
"""The name of the only policy: the operator ignores others."""
_NOT_AWAITED = {"pulumi.com/skipAwait": "true"}
"""Pulumi does not wait for objects with this annotation. It may take weeks until all nodes have the policy's driver."""
_OFED = {
    # Compiling the driver takes up to 12 minutes (network-operator#318). The operator's probes allow 20 minutes.
    "forcePrecompiled": False,
    "terminationGracePeriodSeconds": 300,
    "startupProbe": {"initialDelaySeconds": 10, "periodSeconds": 20},
    "livenessProbe": {"initialDelaySeconds": 30, "periodSeconds": 30},
    "readinessProbe": {"initialDelaySeconds": 10, "periodSeconds": 30},
}


class NetworkOperator(Installed[NetworkOperatorSettings]):
    def create(self, context: InstallContext, settings: NetworkOperatorSettings) -> None:
        upgrades = context.settings.operators.driver_upgrades
        installed = release(
            NAME,
            context,
            parent=self,
            values=values(),
            user_values=settings.values,
            hooks=change_hook("the operator of OFED", operator_template_inputs, upgrades),
        )
        policy = kubernetes.apiextensions.CustomResource(
            POLICY,
            api_version="mellanox.com/v1alpha1",
            kind="NicClusterPolicy",
            metadata={"name": POLICY, "annotations": _NOT_AWAITED},
            spec=policy_spec(settings, upgrades, context.settings.images.registry),
            opts=self.child(depends_on=[installed], hooks=change_hook("OFED", ofed_template_inputs, upgrades)),
        )
        self.followed = self.policies = [policy]


def operator_template_inputs(release: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the inputs of a release that affect OFED's DaemonSet: the chart's version, and one value.

    The value is the image of an init container (state_ofed.go, getInitContainerConfig,
    network-operator v26.4.1).
    """
    operator = (release.get("values") or {}).get("operator") or {}
    return {"version of the chart": release.get("version"), "operator.ofedDriver": operator.get("ofedDriver")}


def ofed_template_inputs(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the inputs of a NicClusterPolicy that affect OFED's DaemonSet
    (manifests/state-ofed-driver/0050_ofed-driver-ds.yaml).
    """
    spec = policy["spec"]
    return {**settings_of(spec["ofedDriver"]), "tolerations": spec.get("tolerations")}


def values() -> Values:
    """Returns values of the chart. The chart's feature rules are off: they match Ethernet functions, which every AKS
    node has.
    """
    return {
        "nfd": {"enabled": False, "deployNodeFeatureRules": False},
        "operator": ON_SYSTEM_POOL,
    }


def policy_spec(settings: NetworkOperatorSettings, upgrades: DriverUpgrades, registry: str | None) -> dict[str, Any]:
    """Returns a policy with DOCA-OFED and one SR-IOV device plugin. A second plugin would claim the same devices."""
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
    # The link type excludes the VM's Ethernet function.
    selectors = {"vendors": [pci_vendor("mellanox")], "linkTypes": ["infiniband"], "isRdma": True}
    return {"resourcePrefix": "nvidia.com", "resourceName": name, "selectors": selectors}


def _image(name: str, registry: str | None, version: str | None = None) -> dict[str, str]:
    return {
        "image": name,
        "repository": repository(name, registry),
        "version": version or versions().images[name].version,
    }


class _NetworkOperator(Operator[NetworkOperatorSettings]):
    name = NAME
    title = "the Network Operator"
    summary = "OFED and RDMA devices; installed if a pool has InfiniBand."
    namespace = NVIDIA_NAMESPACE
    settings = NetworkOperatorSettings
    component = NetworkOperator
    needs: Mapping[Capability, str] = {"node labels": "selects nodes by the labels that Node Feature Discovery sets"}

    def provides(self, settings: NetworkOperatorSettings) -> Mapping[Capability, str]:
        return {"InfiniBand": settings.resource_name}

    def problems(self, installation: Installation) -> Iterator[Problem]:
        yield from autoscaler_problems(installation, installation.stack.operators.of(self).rdma_resource)

    def is_wanted(self, stack: StackFile) -> bool:
        has_infiniband = any(pool.sku.infiniband for pool in stack.gpu_pools().values())
        return has_infiniband and stack.operators.of(self).enabled


OPERATOR = _NetworkOperator()
