"""The smallest program that declares a deployment's resources, with the same types, inputs and order.

`resources.json` lists the resources. Like the real program, it uses the SDKs' classes. `make bench` compares both.
"""

import base64
import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

Made = dict[str, pulumi.Resource]


def kubeconfig(cluster: pulumi.Resource, group: str, name: str) -> pulumi.Output[str]:
    """Returns the kubeconfig of this cluster. All other inputs come from the state of another deployment."""
    found = pulumi.runtime.invoke_output(
        "azure-native:containerservice:listManagedClusterAdminCredentials",
        {"resourceGroupName": group, "resourceName": name},
        pulumi.InvokeOutputOptions(depends_on=[cluster]),
    )
    return pulumi.Output.secret(
        found.apply(lambda answer: base64.b64decode(answer["kubeconfigs"][0]["value"]).decode())
    )


def options(entry: dict[str, Any], made: Made) -> pulumi.ResourceOptions:
    """Returns the recorded options: dependencies, provider and `retain_on_delete`."""
    provider = made.get(entry["provider"])
    return pulumi.ResourceOptions(
        depends_on=[made[label] for label in entry["after"]],
        provider=provider if isinstance(provider, pulumi.ProviderResource) else None,
        retain_on_delete=entry["retained"],
        custom_timeouts=pulumi.CustomTimeouts(create="45m"),
    )


def sdk_class(kind: str) -> Any | None:
    """Returns the SDK's class for a resource type, or None for a resource of a dynamic provider."""
    package, module, name = kind.split(":", 2)
    if package == "azure-native":
        return getattr(importlib.import_module(f"pulumi_azure_native.{module}"), name)
    return kubernetes_class(module, name) if package == "kubernetes" else None


def kubernetes_class(module: str, name: str) -> Any:
    """Returns the class of a Kubernetes type. CRDs share a class; `rbac.authorization.k8s.io/v1` is in `rbac.v1`."""
    group, version = module.split("/")
    if "." not in group or group.endswith(("authorization.k8s.io", "storage.k8s.io", "helm.sh")):
        return getattr(importlib.import_module(f"pulumi_kubernetes.{group.split('.')[0]}.{version}"), name)
    return kubernetes.apiextensions.CustomResource


def declare(entry: dict[str, Any], made: Made) -> pulumi.Resource:
    """Declares a resource. The SDK's arguments have the inputs' names in snake case, some with an additional `_`."""
    sdk = sdk_class(entry["type"])
    if not sdk:
        return pulumi.CustomResource(entry["type"], entry["name"], entry["inputs"], options(entry, made))
    parameters = inspect.signature(sdk._internal_init).parameters
    arguments = {name.replace("_", "").lower(): name for name in parameters}
    inputs = {arguments[key.lower()]: value for key, value in entry["inputs"].items()}
    return sdk(entry["name"], opts=options(entry, made), **inputs)


def main() -> None:
    made: Made = {}
    for entry in json.loads(Path(__file__).with_name("resources.json").read_text(encoding="utf-8")):
        if entry["type"] == "pulumi:providers:kubernetes":
            cluster = made[entry["cluster"]]
            made[entry["label"]] = kubernetes.Provider(entry["name"], kubeconfig=kubeconfig(cluster, *entry["names"]))
        elif not entry["custom"]:
            made[entry["label"]] = pulumi.ComponentResource(entry["type"], entry["name"])
        else:
            made[entry["label"]] = declare(entry, made)


main()
