"""The least program that could register what a deployment has: same types, same inputs, same order, nothing else.

`resources.json` lists the resources; `make bench` compares the real program with this one. It imports the SDKs of those
types, as any program does that declares them.
"""

import base64
import importlib
import json
from pathlib import Path
from typing import Any

import pulumi

Made = dict[str, pulumi.Resource]


def kubeconfig(cluster: pulumi.Resource, group: str, name: str) -> pulumi.Output[str]:
    """The one input that another deployment's state cannot hold: this cluster's credentials."""
    found = pulumi.runtime.invoke_output(
        "azure-native:containerservice:listManagedClusterAdminCredentials",
        {"resourceGroupName": group, "resourceName": name},
        pulumi.InvokeOutputOptions(depends_on=[cluster]),
    )
    return pulumi.Output.secret(
        found.apply(lambda answer: base64.b64decode(answer["kubeconfigs"][0]["value"]).decode())
    )


def options(entry: dict[str, Any], made: Made) -> pulumi.ResourceOptions:
    """As recorded: what it depends on, and its provider."""
    provider = made.get(entry["provider"])
    return pulumi.ResourceOptions(
        depends_on=[made[label] for label in entry["after"]],
        provider=provider if isinstance(provider, pulumi.ProviderResource) else None,
        custom_timeouts=pulumi.CustomTimeouts(create="45m"),
    )


def import_sdks(types: set[str]) -> None:
    """The modules of a program that makes these resources."""
    for package, module, _ in (kind.split(":", 2) for kind in types):
        if package == "azure-native":
            importlib.import_module(f"pulumi_azure_native.{module}")
        elif package == "kubernetes":
            importlib.import_module(f"pulumi_kubernetes.{kubernetes_module(*module.split('/'))}")


def kubernetes_module(group: str, version: str) -> str:
    """Where the SDK has the classes of an API group: `rbac.authorization.k8s.io/v1` in `rbac.v1`."""
    own = "." not in group or group.endswith((".k8s.io", "helm.sh"))
    return f"{group.split('.')[0]}.{version}" if own else "apiextensions"


def main() -> None:
    """Registers everything in the recorded order."""
    made: Made = {}
    entries = json.loads(Path(__file__).with_name("resources.json").read_text(encoding="utf-8"))
    import_sdks({entry["type"] for entry in entries})
    for entry in entries:
        if entry["type"] == "pulumi:providers:kubernetes":
            cluster = made[entry["cluster"]]
            text = kubeconfig(cluster, *entry["names"])
            made[entry["label"]] = pulumi.ProviderResource("kubernetes", entry["name"], {"kubeconfig": text})
        elif not entry["custom"]:
            made[entry["label"]] = pulumi.ComponentResource(entry["type"], entry["name"])
        else:
            made[entry["label"]] = pulumi.CustomResource(
                entry["type"], entry["name"], entry["inputs"], options(entry, made)
            )


main()
