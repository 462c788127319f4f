"""Builds the DaemonSets of a ClusterPolicy.

Source of names, selectors, order and tolerations: gpu-operator v26.7.0, assets and controllers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s.objects import Object
from simulator.operators.gpu_operator import nodes

GPU_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
CONFIG_FOLDER = "/available-configs"

Policy = Mapping[str, Any]
Container = Callable[[Policy, str], list[Object]]


@dataclass(frozen=True)
class Operand:
    """A state of the operator: the policy field that enables it, and its DaemonSet."""

    state: str
    field: str
    daemonset: str
    node_label: str
    containers: Container
    account: str = ""
    default_on: bool = True

    def enabled(self, policy: Policy) -> bool:
        on: bool = policy.get(self.field, {}).get("enabled", self.default_on)
        return on

    @property
    def service_account(self) -> str:
        return self.account or self.daemonset


def image(component: Mapping[str, Any]) -> str:
    separator = "@" if str(component["version"]).startswith("sha256:") else ":"
    return f"{component['repository']}/{component['image']}{separator}{component['version']}"


def daemonset(operand: Operand, policy: Policy, namespace: str, os_tag: str) -> Object:
    """Returns the operand's DaemonSet. `os_tag` is the nodes' OS, e.g. `ubuntu24.04`."""
    common, component = policy["daemonsets"], policy.get(operand.field, {})
    labels = {"app": operand.daemonset}
    pod_labels = labels | ({"app.kubernetes.io/component": "nvidia-driver"} if operand.field == "driver" else {})
    config = (policy["devicePlugin"] if operand.field == "gfd" else component).get("config", {}).get("name", "")
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": operand.daemonset,
            "namespace": namespace,
            "labels": {**common.get("labels", {}), **labels},
            "annotations": dict(common.get("annotations", {})),
        },
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": _update_strategy(operand, common),
            "template": {
                "metadata": {"labels": {**common.get("labels", {}), **pod_labels}},
                "spec": {
                    "nodeSelector": {operand.node_label: "true"},
                    "tolerations": common.get("tolerations") or [GPU_TOLERATION],
                    "priorityClassName": common.get("priorityClassName", "system-node-critical"),
                    "serviceAccountName": operand.service_account,
                    "hostNetwork": bool(component.get("hostNetwork", False)),
                    "imagePullSecrets": [{"name": name} for name in component.get("imagePullSecrets", [])],
                    "containers": operand.containers(policy, os_tag),
                    "volumes": [{"name": "configs", "configMap": {"name": config}}] if config else [],
                },
            },
        },
    }


def _update_strategy(operand: Operand, common: Mapping[str, Any]) -> Object:
    if operand.field == "driver" or common.get("updateStrategy") == "OnDelete":
        return {"type": "OnDelete"}
    most = common.get("rollingUpdate", {}).get("maxUnavailable") or "1"
    amount = most if most.endswith("%") else int(most)
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": amount}}


def _container(name: str, component: Mapping[str, Any], command: Sequence[str], **extra: Any) -> Object:
    container = {
        "name": name,
        "image": image(component),
        "imagePullPolicy": component.get("imagePullPolicy", "IfNotPresent"),
        "command": list(command),
        "args": list(component.get("args", [])),
        "env": list(component.get("env", [])),
        "resources": component.get("resources", {}),
        "securityContext": {"privileged": True},
    }
    return container | extra


def _driver(policy: Policy, os_tag: str) -> list[Object]:
    driver = policy["driver"]
    tagged = (
        driver
        if str(driver["version"]).startswith("sha256:")
        else driver | {"version": f"{driver['version']}-{os_tag}"}
    )
    rdma = driver.get("rdma", {})
    env = list(driver.get("env", []))
    if rdma.get("enabled"):
        env.append({"name": "GPU_DIRECT_RDMA_ENABLED", "value": "true"})
        if rdma.get("useHostMofed"):
            env.append({"name": "USE_HOST_MOFED", "value": "true"})
    containers = [_container("nvidia-driver-ctr", tagged, ["nvidia-driver", "init"], env=env)]
    if rdma.get("enabled"):
        containers.append(_container("nvidia-peermem-ctr", tagged, ["nvidia-driver", "reload_nvidia_peermem"]))
    for field, name, command in (
        ("gds", "nvidia-fs-ctr", "nvidia-gds-driver install"),
        ("gdrcopy", "nvidia-gdrcopy-ctr", "nvidia-gdrcopy-driver install"),
    ):
        component = policy.get(field, {})
        if component.get("enabled"):
            version = {"version": f"{component['version']}-{os_tag}"}
            containers.append(_container(name, component | version, ["bash", "-xc", command]))
    return containers


def _device_plugin(policy: Policy, _: str) -> list[Object]:
    plugin = policy["devicePlugin"]
    env, mounts = _sharing(policy)
    env = [*plugin.get("env", []), *env]
    return [_container("nvidia-device-plugin", plugin, ["nvidia-device-plugin"], env=env, volumeMounts=mounts)]


def _sharing(policy: Policy) -> tuple[list[Object], list[Object]]:
    config = policy["devicePlugin"].get("config", {})
    env = [{"name": "MIG_STRATEGY", "value": policy.get("mig", {}).get("strategy", "single")}]
    if not config.get("name"):
        return env, []
    default = {"name": "DEFAULT_CONFIG", "value": config.get("default", "")}
    return [*env, default], [{"name": "configs", "mountPath": CONFIG_FOLDER}]


def _gfd(policy: Policy, _: str) -> list[Object]:
    node = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    env, mounts = _sharing(policy)
    env = [*policy["gfd"].get("env", []), node, *env]
    return [_container("gpu-feature-discovery", policy["gfd"], ["gpu-feature-discovery"], env=env, volumeMounts=mounts)]


def _simple(name: str, field: str, *command: str) -> Container:
    return lambda policy, _: [_container(name, policy[field], command)]


OPERANDS = (
    Operand("state-driver", "driver", "nvidia-driver-daemonset", nodes.DEPLOY_DRIVER, _driver, "nvidia-driver"),
    Operand(
        "state-container-toolkit",
        "toolkit",
        "nvidia-container-toolkit-daemonset",
        "nvidia.com/gpu.deploy.container-toolkit",
        _simple("nvidia-container-toolkit-ctr", "toolkit", "nvidia-toolkit"),
        "nvidia-container-toolkit",
    ),
    Operand(
        "state-operator-validation",
        "validator",
        "nvidia-operator-validator",
        "nvidia.com/gpu.deploy.operator-validator",
        _simple("nvidia-operator-validator", "validator", "nvidia-validator"),
    ),
    Operand(
        "state-device-plugin",
        "devicePlugin",
        "nvidia-device-plugin-daemonset",
        "nvidia.com/gpu.deploy.device-plugin",
        _device_plugin,
        "nvidia-device-plugin",
    ),
    Operand(
        "state-dcgm",
        "dcgm",
        "nvidia-dcgm",
        "nvidia.com/gpu.deploy.dcgm",
        _simple("nvidia-dcgm-ctr", "dcgm", "nv-hostengine"),
        default_on=False,
    ),
    Operand(
        "state-dcgm-exporter",
        "dcgmExporter",
        "nvidia-dcgm-exporter",
        "nvidia.com/gpu.deploy.dcgm-exporter",
        _simple("nvidia-dcgm-exporter", "dcgmExporter", "dcgm-exporter"),
    ),
    Operand(
        "gpu-feature-discovery",
        "gfd",
        "gpu-feature-discovery",
        "nvidia.com/gpu.deploy.gpu-feature-discovery",
        _gfd,
        "nvidia-gpu-feature-discovery",
    ),
    Operand(
        "state-mig-manager",
        "migManager",
        "nvidia-mig-manager",
        nodes.DEPLOY_MIG_MANAGER,
        _simple("nvidia-mig-manager", "migManager", "nvidia-mig-manager"),
    ),
    Operand(
        "state-node-status-exporter",
        "nodeStatusExporter",
        "nvidia-node-status-exporter",
        "nvidia.com/gpu.deploy.node-status-exporter",
        _simple("nvidia-node-status-exporter", "nodeStatusExporter", "nvidia-validator"),
        default_on=False,
    ),
)
"""Operands in the operator's order."""
