"""The plugin under the real engine, in front of simulated Azure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import networks as net
from tests.support.arm import GROUP, Arm
from tests.support.azure_plugin import AzurePlugin
from tests.support.plugin_stack import PluginStack

PROGRAM = """
import pulumi
import pulumi_azure_native as azure

group = azure.resources.ResourceGroup("group", resource_group_name="rg", location="eastus")
azure.network.VirtualNetwork(
    "network",
    resource_group_name=group.name,
    virtual_network_name="net",
    address_space=azure.network.AddressSpaceArgs(address_prefixes=["10.16.0.0/16"]),
    subnets=[azure.network.SubnetArgs(name="nodes", address_prefix="10.16.0.0/24")],
    tags={"shown": "plain", "hidden": pulumi.Output.secret("hunter2")},
)
"""

IMPORTED = """
import pulumi_azure_native as azure

azure.network.VirtualNetwork(
    "network",
    resource_group_name="rg",
    virtual_network_name="ai",
    location="eastus",
    address_space=azure.network.AddressSpaceArgs(address_prefixes=["10.16.0.0/16"]),
)
"""


@pytest.fixture
def stack(plugin: AzurePlugin, tmp_path: Path) -> PluginStack:
    """In the environment of `plugin`, which names the simulated Azure."""
    return PluginStack(tmp_path / "stack", kubeconfig="")


@pytest.mark.simulator
def test_secrets_stay_secret_and_nothing_changes_afterwards(stack: PluginStack, arm: Arm) -> None:
    (stack.folder / "__main__.py").write_text(PROGRAM)
    up = stack.up()
    assert up.code == 0, up.output
    kept = "".join(path.read_text() for path in (stack.folder / "state").rglob("*.json"))
    assert "plain" in kept
    assert "hunter2" not in kept
    for command in (("refresh", "--yes"), ("preview", "--expect-no-changes")):
        done = stack.pulumi(*command)
        assert done.code == 0, done.output


@pytest.mark.simulator
def test_program_of_an_import_changes_nothing(stack: PluginStack, arm: Arm) -> None:
    net.make(arm, GROUP, {"location": "eastus"})
    net.make(arm, net.NETWORK, net.network_body())
    (stack.folder / "__main__.py").write_text(IMPORTED)
    resource = "azure-native:network:VirtualNetwork"
    done = stack.pulumi("import", resource, "network", net.NETWORK, "--yes", "--protect=false", "--generate-code=false")
    assert done.code == 0, done.output
    preview = stack.pulumi("preview", "--expect-no-changes", "--diff")
    assert preview.code == 0, preview.output
