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
NODES = HUB.replace("/net/", "/ai-on-aks-test/").replace("/hub", "/ai-on-aks-test") + "/subnets/nodes"
CREATED = {"private": True, "addressSpace": "10.0.0.0/16"}
EXISTING = {
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
    stack = {"vmSku": H100, "network": network or CREATED, "registry": {"sku": "Premium"}, "storage": SIGNED, **keys}
    return program(stack, azure)


def refused(azure: Azure, network: dict[str, Any] | None = None) -> str:
    with pytest.raises(pulumi.RunError) as why:
        run(azure, network)
    assert "Nothing was changed" in str(why.value)
    return str(why.value)


def up(tags: dict[str, str], **more: Any) -> Azure:
    pools = {"system": {"vnetSubnetID": NODES, "vmSize": "Standard_D8ads_v5"}}
    channel = {"autoUpgradeProfile": {"nodeOSUpgradeChannel": "Unmanaged"}}
    profiles = {**PRIVATE, **channel, "apiServerAccessProfile": {"enablePrivateCluster": True}}
    return Azure(cluster=True, pools=pools, tags=tags, address_space="10.0.0.0/16", profiles=profiles, **more)


def test_the_first_phase_outputs_the_next_command() -> None:
    first = run(Azure(inside=False), {**CREATED, "jumpBox": JUMP_BOX}).outputs
    assert not {"pools", "kubeconfig"} & first.keys()
    assert f"pool gpu: {H100}" not in first["price"]["resources"]
    command = first["next"]
    assert command.startswith("az network bastion ssh --name ai-on-aks-test-jump --resource-group ai-on-aks-test ")
    assert command.endswith("--auth-type ssh-key --username azureuser --ssh-key ~/.ssh/id_ed25519")
    assert run(Azure(inside=False)).outputs["next"] == "pulumi up -s test"


def test_the_second_phase_keeps_the_resources_of_the_first() -> None:
    network = {**CREATED, "jumpBox": JUMP_BOX}
    first, second = run(Azure(inside=False), network), run(up(FIRST), network)
    before, after = (
        {made.type + made.name: made for made in each.registered if made.custom} for each in (first, second)
    )
    changed = [name for name, made in before.items() if made.inputs != after[name].inputs]
    assert changed == ["azure-native:resources:ResourceGroupresource-group"]
    assert after[changed[0]].inputs["tags"] == SECOND
    assert second.names(":AgentPool") == ["pool-gpu"]
    assert second.outputs["next"] == "# nothing: both phases are done"


def test_an_unfinished_first_phase_continues() -> None:
    assert run(up(FIRST, inside=False)).outputs["next"]
    assert run(Azure(tags=FIRST, inside=False)).outputs["next"]


def test_rejects_the_second_phase_from_outside() -> None:
    azure = up(SECOND, inside=False)
    why = refused(azure)
    assert why.startswith("cluster ai-on-aks-test does not answer: the cluster is stopped, or it is private")
    assert "    az aks command invoke --resource-group ai-on-aks-test --name ai-on-aks-test --command" in why
    assert "    PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy --refresh -s test" in why
    assert "az network bastion ssh" not in why
    assert "az network bastion ssh" in refused(up(SECOND, inside=False), {**CREATED, "jumpBox": JUMP_BOX})


def test_rejects_a_deleted_cluster_from_outside() -> None:
    why = refused(Azure(tags=SECOND, address_space="10.0.0.0/16", inside=False))
    assert "the cluster ai-on-aks-test was deleted in Azure" in why
    assert "az aks command invoke" not in why


def test_a_stack_in_an_existing_network_has_one_phase_from_inside() -> None:
    deployed = run(Azure(inside=True), EXISTING)
    assert deployed.names(":AgentPool") == ["pool-gpu"]
    assert "tags" not in deployed.one("resources:ResourceGroup").inputs
    assert "next" not in deployed.outputs
    why = refused(Azure(inside=False), EXISTING)
    assert why.startswith("this machine is outside the network hub")
    assert why.endswith("pulumi config set -s test --path network.inside true")


def test_rejects_a_consumer_stack_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    server = {"server": "https://ai.0a.privatelink.eastus.azmk8s.io:443"}
    users = [{"name": "admin", "user": {}}]
    monkeypatch.setitem(mocked_azure.KUBECONFIGS, "User", {"clusters": [{"cluster": server}], "users": users})
    shared_platform = run(Azure(inside=True), workloads="nccl-allreduce")
    consumer = {"platformStack": "test", "workloads": "nccl-allreduce"}
    with pytest.raises(
        pulumi.RunError, match="the cluster of .*/test does not answer: the cluster is stopped, or it is private"
    ):
        program(consumer, Azure(stacks={"test": shared_platform}, inside=False), "jobs")
    assert program(consumer, Azure(stacks={"test": shared_platform}, inside=True), "jobs").names(":Job")


def test_the_setting_inside_overrides_the_detection() -> None:
    assert run(Azure(inside=False), {**EXISTING, "inside": True}).names(":AgentPool") == ["pool-gpu"]


def test_a_machine_outside_needs_no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr("components.preflight.checks.check_login", lambda *args: asked.append(args))
    run(Azure(inside=False))
    assert asked == []
    run(Azure(inside=True))
    assert len(asked) == 1


@pytest.mark.parametrize(("cluster", "deployer"), [({}, PRINCIPAL), ({"deployerObjectId": DEPLOYER}, DEPLOYER)])
def test_the_jump_box_is_the_deployer_unless_one_is_set(cluster: dict[str, str], deployer: str) -> None:
    made = run(Azure(inside=True), {**CREATED, "jumpBox": JUMP_BOX}, cluster=cluster)
    assert made.one(":RoleAssignment", "deployer-blob-data").inputs["principalId"] == deployer
    assert ("deployer-cluster-admin" in made.names(":RoleAssignment")) == (deployer != PRINCIPAL)


def test_signs_sas_after_the_account_has_private_names() -> None:
    signed = run(Azure(inside=True)).one(":DelegationSas")
    assert "azure-native:network:PrivateDnsZoneGroup names-blob" in signed.dependencies
    assert "azure-native:privatedns:VirtualNetworkLink link-blob" in signed.dependencies
