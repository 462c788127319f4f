"""Builds the objects of a NicClusterPolicy.

Source of names, selectors and tolerations: network-operator v26.4.1, manifests and pkg/state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s.objects import Object
from k8s.scheduling import tolerates
from simulator.operators._loop import digest_of, label

NIC_LABEL = "feature.node.kubernetes.io/pci-15b3.present"
OS_LABEL = "feature.node.kubernetes.io/system-os_release.ID"
OS_VERSION_LABEL = "feature.node.kubernetes.io/system-os_release.VERSION_ID"
KERNEL_LABEL = "feature.node.kubernetes.io/kernel-version.full"
ARCH_LABEL = "kubernetes.io/arch"
OFED_POD_LABEL = "nvidia.com/ofed-driver"
OFED_CONTAINER = "mofed-container"
WAIT_LABEL = "network.nvidia.com/operator.mofed.wait"
OWNER_LABEL = "ds-owner"
STATE_LABEL = "nvidia.network-operator.state"
GPU_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
# Tolerations of DaemonSet pods with the host's network (Kubernetes' DaemonSet controller).
DAEMONSET_TOLERATIONS = tuple(
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
    for name, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
        ("network-unavailable", "NoSchedule"),
    )
)
PROBE_DEFAULTS = {"initialDelaySeconds": 10, "periodSeconds": 30, "failureThreshold": 1, "timeoutSeconds": 10}
STARTUP_DEFAULTS = {"initialDelaySeconds": 30, "periodSeconds": 10, "failureThreshold": 120, "timeoutSeconds": 10}


class PolicyError(ValueError):
    """The policy cannot be applied. The policy's status shows the message."""


@dataclass(frozen=True, order=True)
class HostGroup:
    """A group of nodes with the same OS, kernel and architecture. Each group has an OFED DaemonSet."""

    os: str
    os_version: str
    kernel: str
    arch: str

    @property
    def name(self) -> str:
        """The group's name in the name of the DaemonSet, such as `ubuntu24.04-<hash of the kernel>`."""
        return f"{self.os}{self.os_version}-{digest_of(self.kernel)[:10]}"


def host_groups(nodes: Iterable[Object], tolerations: Sequence[Object]) -> list[HostGroup]:
    """Returns the groups of all nodes that have the NIC label and only taints that OFED's pods tolerate."""
    accepted = [*tolerations, GPU_TOLERATION, *DAEMONSET_TOLERATIONS]
    groups = set()
    for node in nodes:
        facts = [label(node, name) for name in (OS_LABEL, OS_VERSION_LABEL, KERNEL_LABEL, ARCH_LABEL)]
        taints = node["spec"].get("taints", [])
        if label(node, NIC_LABEL) == "true" and all(tolerates(accepted, taint) for taint in taints):
            os, os_version, kernel, arch = facts
            if os and os_version and kernel and arch:
                groups.add(HostGroup(os, os_version, kernel, arch))
    return sorted(groups)


def image(component: Mapping[str, Any], policy: Mapping[str, Any]) -> str:
    """Returns `repository/image:version`. spec.global has the default repository and version."""
    common = policy.get("global", {})
    parts = {key: component.get(key) or common.get(key, "") for key in ("repository", "version")}
    for key, value in parts.items():
        if not value:
            raise PolicyError(f"{key} is required: set it on the component or in spec.global")
    separator = "@" if parts["version"].startswith("sha256") else ":"
    return f"{parts['repository']}/{component['image']}{separator}{parts['version']}"


def ofed(policy: Mapping[str, Any], groups: Iterable[HostGroup], namespace: str) -> list[Object]:
    """Returns the service account, and a DaemonSet for each group, which installs DOCA OFED."""
    account = service_account("ofed-driver", namespace, "state-OFED")
    return [account, *(ofed_daemonset(policy, group, namespace) for group in groups)]


def service_account(name: str, namespace: str, state: str) -> Object:
    metadata = {"name": name, "namespace": namespace, "labels": {STATE_LABEL: state}}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def ofed_daemonset(policy: Mapping[str, Any], group: HostGroup, namespace: str) -> Object:
    driver = policy["ofedDriver"]
    reference = image(driver, policy)
    if driver.get("forcePrecompiled") and "@" not in reference:
        raise PolicyError(f"ForcePrecompiled is enabled and no precompiled image is known for kernel {group.kernel}")
    app = f"mofed-{group.name}"
    probes = {
        name: {"exec": {"command": ["sh", "-c", check]}, "successThreshold": 1, **defaults, **driver.get(name, {})}
        for name, check, defaults in (
            ("startupProbe", "ls /run/mellanox/drivers/.driver-ready", STARTUP_DEFAULTS),
            ("livenessProbe", "lsmod | grep mlx5_core", PROBE_DEFAULTS),
            ("readinessProbe", "lsmod | grep mlx5_core", PROBE_DEFAULTS),
        )
    }
    container = {
        "name": OFED_CONTAINER,
        "image": reference if "@" in reference else f"{reference}-{group.os}{group.os_version}-{group.arch}",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"privileged": True, "seLinuxOptions": {"level": "s0"}},
        "env": [*driver.get("env", []), *_default_env(driver.get("env", []))],
        "volumeMounts": [{"name": "run-mlnx-ofed", "mountPath": "/run/mellanox/drivers"}],
        **probes,
    }
    labels = {"app": app, OFED_POD_LABEL: ""}
    pod = _pod(policy, driver, container, {NIC_LABEL: "true", **_host_selector(group)}, "ofed-driver")
    pod["affinity"]["podAntiAffinity"] = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchExpressions": [{"key": OFED_POD_LABEL, "operator": "Exists"}]},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
    pod["terminationGracePeriodSeconds"] = driver.get("terminationGracePeriodSeconds", 300)
    pod["volumes"] = [{"name": "run-mlnx-ofed", "hostPath": {"path": "/run/mellanox/drivers"}}]
    daemonset = _daemonset(f"{app}-ds", namespace, "state-OFED", {"app": app}, labels, pod)
    daemonset["spec"]["updateStrategy"] = {"type": "OnDelete"}
    return daemonset


def sriov_device_plugin(policy: Mapping[str, Any], namespace: str) -> list[Object]:
    plugin = policy["sriovDevicePlugin"]
    container = {
        "name": "kube-sriovdp",
        "image": image(plugin, policy),
        "imagePullPolicy": "IfNotPresent",
        "args": ["--log-dir=sriovdp", "--log-level=10", *(["--use-cdi"] if plugin.get("useCdi") else [])],
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "config-volume", "mountPath": "/etc/pcidp"}],
    }
    name = "network-operator-sriov-device-plugin"
    labels = {"name": name, "tier": "node", "app": "sriovdp"}
    return _plugin(policy, plugin, container, (name, "network-operator-sriovdp-config", name), labels, namespace)


def rdma_shared_device_plugin(policy: Mapping[str, Any], namespace: str) -> list[Object]:
    plugin = policy["rdmaSharedDevicePlugin"]
    container = {
        "name": "rdma-shared-dp",
        "image": image(plugin, policy),
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/k8s-rdma-shared-dp"],
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "config-volume", "mountPath": "/k8s-rdma-shared-dev-plugin"}],
    }
    names = ("rdma-shared-dp-ds", "rdma-devices", "")
    return _plugin(policy, plugin, container, names, {"app": "rdma-shared-dp"}, namespace)


def _plugin(
    policy: Mapping[str, Any],
    plugin: Mapping[str, Any],
    container: Object,
    names: tuple[str, str, str],
    labels: Mapping[str, str],
    namespace: str,
) -> list[Object]:
    name, config_name, account = names
    state = "state-SRIOV-device-plugin" if account else "state-RDMA-device-plugin"
    pod = _pod(policy, plugin, container, {NIC_LABEL: "true", WAIT_LABEL: "false"}, account)
    items = [{"key": "config.json", "path": "config.json"}]
    pod["volumes"] = [{"name": "config-volume", "configMap": {"name": config_name, "items": items}}]
    selector = dict(list(labels.items())[:1])
    daemonset = _daemonset(name, namespace, state, selector, labels, pod)
    config = plugin.get("config", "")
    annotations = {"nvidia.network-operator.config-hash": digest_of(config)}
    daemonset["spec"]["template"]["metadata"]["annotations"] = annotations
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": config_name, "namespace": namespace, "labels": {STATE_LABEL: state}},
        "data": {"config.json": config},
    }
    accounts = [service_account(account, namespace, state)] if account else []
    return [*accounts, config_map, daemonset]


def _pod(
    policy: Mapping[str, Any],
    component: Mapping[str, Any],
    container: Object,
    selector: Mapping[str, str],
    account: str,
) -> Object:
    resources = {entry["name"]: entry for entry in component.get("containerResources", [])}
    if entry := resources.get(container["name"]):
        container["resources"] = {key: entry[key] for key in ("limits", "requests") if key in entry}
    secrets = component.get("imagePullSecrets") or policy.get("global", {}).get("imagePullSecrets", [])
    return {
        "priorityClassName": "system-node-critical",
        "hostNetwork": True,
        "serviceAccountName": account or "default",
        "nodeSelector": dict(selector),
        "tolerations": [*policy.get("tolerations", []), GPU_TOLERATION],
        "affinity": {"nodeAffinity": policy["nodeAffinity"]} if policy.get("nodeAffinity") else {},
        "imagePullSecrets": [{"name": name} for name in secrets],
        "containers": [container],
    }


def _daemonset(
    name: str,
    namespace: str,
    state: str,
    selector: Mapping[str, str],
    labels: Mapping[str, str],
    pod: Object,
) -> Object:
    own = {**labels, OWNER_LABEL: "NicClusterPolicy"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace, "labels": {**own, STATE_LABEL: state}},
        "spec": {
            "selector": {"matchLabels": dict(selector)},
            "template": {"metadata": {"labels": own}, "spec": pod},
        },
    }


def _host_selector(group: HostGroup) -> dict[str, str]:
    return {OS_LABEL: group.os, OS_VERSION_LABEL: group.os_version, KERNEL_LABEL: group.kernel}


def _default_env(given: Sequence[Mapping[str, Any]]) -> list[Object]:
    defaults = {
        "CREATE_IFNAMES_UDEV": "true",
        "NVIDIA_NIC_DRIVERS_INVENTORY_PATH": "/mnt/drivers-inventory",
    }
    names = {entry["name"] for entry in given}
    return [{"name": name, "value": value} for name, value in defaults.items() if name not in names]
