"""The least program that could register what a deployment has: same types, same inputs, same order, nothing else.

`resources.json` lists the resources; `make bench` compares the real program with this one.
"""

import base64
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


def main() -> None:
    """Registers everything in the recorded order."""
    made: Made = {}
    for entry in json.loads(Path(__file__).with_name("resources.json").read_text(encoding="utf-8")):
        if entry["type"] == "pulumi:providers:kubernetes":
            cluster = made[entry["cluster"]]
            text = kubeconfig(cluster, *entry["names"])
            made[entry["label"]] = pulumi.ProviderResource("kubernetes", entry["name"], {"kubeconfig": text})
        else:
            made[entry["label"]] = pulumi.CustomResource(
                entry["type"], entry["name"], entry["inputs"], options(entry, made)
            )


main()
