"""From where a private stack can be deployed. The golden files `private-*` have what it creates."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from tests.support import mocked_azure
from tests.support.golden import PUBLIC_KEY
from tests.support.mocked_azure import DEPLOYER, PRINCIPAL, SUBSCRIPTION, Azure
from tests.support.mocks import Recorder, program
from tests.support.sizes import H100

HUB = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/hub"
OUR_NODES = HUB.replace("/net/", "/ai-on-aks-test/").replace("/hub", "/ai-on-aks-test") + "/subnets/nodes"
OURS = {"private": True, "addressSpace": "10.0.0.0/16"}
THEIRS = {
    "private": True,
    "id": HUB,
    "nodeSubnet": f"{HUB}/subnets/nodes",
    "endpointSubnet": f"{HUB}/subnets/endpoints",
    "outbound": "loadBalancer",
}
JUMP_BOX = {"sshPublicKey": PUBLIC_KEY}
SIGNED = {"containers": {"data": {"sas": "user-delegation"}}}
FIRST, SECOND = {"ai-on-aks-phase": "outside"}, {"ai-on-aks-phase": "inside"}
PRIVATE = {"privateFQDN": "test.0a1b.privatelink.eastus.azmk8s.io"}


def run(azure: Azure, network: dict[str, Any] | None = None, **keys: Any) -> Recorder:
    stack = {"vmSku": H100, "network": network or OURS, "registry": {"sku": "Premium"}, "storage": SIGNED, **keys}
    return program(stack, azure)


def refused(azure: Azure, network: dict[str, Any] | None = None) -> str:
    with pytest.raises(pulumi.RunError) as why:
        run(azure, network)
    assert "Nothing was changed" in str(why.value)
    return str(why.value)


def up(tags: dict[str, str], **more: Any) -> Azure:
    """A cluster that is there, in a network that the stack has made."""
    pools = {"system": {"vnetSubnetID": OUR_NODES, "vmSize": "Standard_D8ads_v5"}}
    as_made = {"autoUpgradeProfile": {"nodeOSUpgradeChannel": "Unmanaged"}}
    profiles = {**PRIVATE, **as_made, "apiServerAccessProfile": {"enablePrivateCluster": True}}
    return Azure(cluster=True, pools=pools, tags=tags, address_space="10.0.0.0/16", profiles=profiles, **more)


def test_its_output_is_the_command_to_go_on_with() -> None:
    first = run(Azure(inside=False), {**OURS, "jumpBox": JUMP_BOX}).outputs
    assert not {"pools", "kubeconfig"} & first.keys()
    assert f"pool gpu: {H100}" not in first["price"]["resources"]
    command = first["next"]
    assert command.startswith("az network bastion ssh --name ai-on-aks-test-jump --resource-group ai-on-aks-test ")
    assert command.endswith("--auth-type ssh-key --username azureuser --ssh-key ~/.ssh/id_ed25519")
    assert run(Azure(inside=False)).outputs["next"] == "pulumi up -s test", "on a machine of the user's own inside"


def test_the_second_phase_declares_the_first_again_and_the_rest() -> None:
    network = {**OURS, "jumpBox": JUMP_BOX}
    first, second = run(Azure(inside=False), network), run(up(FIRST), network)
    before, after = (
        {made.type + made.name: made for made in each.registered if made.custom} for each in (first, second)
    )
    changed = [name for name, made in before.items() if made.inputs != after[name].inputs]
    assert changed == ["azure-native:resources:ResourceGroupresource-group"]
    assert after[changed[0]].inputs["tags"] == SECOND
    assert second.names(":AgentPool") == ["pool-gpu"]
    assert second.outputs["next"] == "# nothing: both phases are done"


def test_an_unfinished_first_phase_goes_on() -> None:
    assert run(up(FIRST, inside=False)).outputs["next"]
    assert run(Azure(tags=FIRST, inside=False)).outputs["next"]


def test_what_is_in_the_cluster_is_not_taken_down_from_outside() -> None:
    azure = up(SECOND, inside=False)
    why = refused(azure)
    assert why.startswith("cluster ai-on-aks-test does not answer this machine: it is private")
    assert "    az aks command invoke --resource-group ai-on-aks-test --name ai-on-aks-test --command" in why
    assert "    PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy --refresh -s test" in why
    assert "az network bastion ssh" not in why
    assert "az network bastion ssh" in refused(up(SECOND, inside=False), {**OURS, "jumpBox": JUMP_BOX})


def test_a_cluster_that_somebody_has_deleted_is_none_that_never_was() -> None:
    why = refused(Azure(tags=SECOND, address_space="10.0.0.0/16", inside=False))
    assert "the cluster ai-on-aks-test is gone from Azure" in why
    assert "az aks command invoke" not in why


def test_in_a_network_that_is_there_all_is_declared_at_once_by_who_is_inside() -> None:
    whole = run(Azure(inside=True), THEIRS)
    assert whole.names(":AgentPool") == ["pool-gpu"]
    assert "tags" not in whole.one("resources:ResourceGroup").inputs
    assert "next" not in whole.outputs
    why = refused(Azure(inside=False), THEIRS)
    assert why.startswith("this machine is outside the network hub")
    assert why.endswith("pulumi config set -s test --path network.inside true")


def test_a_stack_on_the_platform_of_another_is_told_that_it_is_outside_too(monkeypatch: pytest.MonkeyPatch) -> None:
    server = {"server": "https://ai.0a.privatelink.eastus.azmk8s.io:443"}
    users = [{"name": "admin", "user": {}}]
    monkeypatch.setitem(mocked_azure.KUBECONFIGS, "User", {"clusters": [{"cluster": server}], "users": users})
    shared_platform = run(Azure(inside=True), workloads="nccl-allreduce")
    consumer = {"platformStack": "test", "workloads": "nccl-allreduce"}
    with pytest.raises(pulumi.RunError, match="the cluster of .*/test does not answer this machine: it is private"):
        program(consumer, Azure(stacks={"test": shared_platform}, inside=False), "jobs")
    assert program(consumer, Azure(stacks={"test": shared_platform}, inside=True), "jobs").names(":Job")


def test_who_reaches_a_network_another_way_says_so() -> None:
    assert run(Azure(inside=False), {**THEIRS, "inside": True}).names(":AgentPool") == ["pool-gpu"]


def test_the_machine_outside_needs_no_login_to_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr("components.preflight.checks.check_login", lambda *args: asked.append(args))
    run(Azure(inside=False))
    assert asked == []
    run(Azure(inside=True))
    assert len(asked) == 1


@pytest.mark.parametrize(("cluster", "deployer"), [({}, PRINCIPAL), ({"deployerObjectId": DEPLOYER}, DEPLOYER)])
def test_the_jump_box_deploys_unless_another_deployer_is_set(cluster: dict[str, str], deployer: str) -> None:
    made = run(Azure(inside=True), {**OURS, "jumpBox": JUMP_BOX}, cluster=cluster)
    assert made.one(":RoleAssignment", "deployer-blob-data").inputs["principalId"] == deployer
    assert ("deployer-cluster-admin" in made.names(":RoleAssignment")) == (deployer != PRINCIPAL)


def test_nothing_is_signed_before_names_lead_to_the_account() -> None:
    signed = run(Azure(inside=True)).one(":DelegationSas")
    assert "azure-native:network:PrivateDnsZoneGroup names-blob" in signed.dependencies
    assert "azure-native:privatedns:VirtualNetworkLink link-blob" in signed.dependencies
