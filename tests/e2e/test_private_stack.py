from __future__ import annotations

import json
import ssl
from collections.abc import Iterator

import httpx
import pytest
import yaml

from simulator.host import paths
from tests.support import networks as net
from tests.support.arm import API
from tests.support.arm import GROUP as GROUPS
from tests.support.world import CommandFailed, Stack, World, eventually, log, names

pytestmark = [pytest.mark.simulator, pytest.mark.long]
NAME = "secluded"
GROUP = f"resourceGroups/ai-on-aks-{NAME}"
CLUSTER = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/ai-on-aks-{NAME}"
HUB = "resourceGroups/hub"
NO_SUCH_HOST = r"lookup \S+\.privatelink\.eastus\.azmk8s\.io.*: no such host"


@pytest.fixture(scope="module")
def stack(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    made = Stack.create(world, NAME, tmp_path_factory.mktemp(NAME) / "project", {}, like="private")
    yield made
    destroy = f"pulumi destroy --refresh --yes --skip-preview --remove --stack {NAME} --non-interactive"
    from_outside = world.environment | {"PULUMI_K8S_DELETE_UNREACHABLE": "true"}  # as in docs/cluster-access.md
    world.run(destroy.split(), cwd=made.folder, environment=from_outside)


def pools(stack: Stack) -> set[str]:
    version = API["Microsoft.ContainerService"]
    listed = stack.world.arm("GET", f"{CLUSTER}/agentPools?api-version={version}")["value"]
    return {pool["name"] for pool in listed}


def kubectl(stack: Stack, *arguments: str) -> str:
    return stack.world.run(
        ["kubectl", "--context", f"ai-on-aks-{NAME}+ai-on-aks-{NAME}", *arguments], environment=stack.environment
    ).stdout


def test_from_outside_only_the_first_phase_is_deployed(stack: Stack) -> None:
    assert "This machine is outside the network that the stack creates" in stack.up()
    assert stack.outputs()["next"].startswith("az network bastion ssh ")
    assert pools(stack) == {"system"}
    with pytest.raises(CommandFailed, match=NO_SUCH_HOST):
        kubectl(stack, "get", "nodes")


def test_the_jump_box_can_be_removed_and_added_again(stack: Stack) -> None:
    """The subnets stay, because Azure does not delete them before the jump box."""
    chosen = yaml.safe_load((paths.ROOT / "Pulumi.private.yaml").read_text())["config"]["ai-on-aks:network"]
    machines = f"{GROUP}/providers/Microsoft.Compute/virtualMachines?api-version={API['Microsoft.Compute']}"
    stack.set(network={key: value for key, value in chosen.items() if key != "jumpBox"})
    assert "and its Bastion" in stack.up()
    assert stack.world.arm("GET", machines)["value"] == []
    stack.set(network=chosen)
    stack.up()
    assert len(stack.world.arm("GET", machines)["value"]) == 1


def test_the_second_phase_is_deployed_inside_with_the_machines_identity(stack: Stack) -> None:
    stack.inside = f"ai-on-aks-{NAME}"
    stack.up()
    assert len(pools(stack)) == 2
    eventually(lambda: "VERDICT: PASS" in verdict(stack), "the NCCL job passes", 240)
    assert "cluster-admin" not in kubectl(stack, "auth", "whoami")
    assert stack.pulumi("preview", "--expect-no-changes")


def verdict(stack: Stack) -> str:
    succeeded = [pod for pod in stack.kube.list("v1", "Pod", "ai") if pod["status"]["phase"] == "Succeeded"]
    return "".join(log(stack.kube, name) for name in names(succeeded) if name.endswith("mpimaster-0"))


def test_after_the_second_phase_an_up_from_outside_fails_without_changes(stack: Stack) -> None:
    before, stack.inside = pools(stack), ""
    output = stack.up(check=False)
    assert stack.returncode != 0
    assert "outside" in output
    assert "az aks command invoke" in output
    assert pools(stack) == before


def test_the_registry_denies_access_from_outside(stack: Stack) -> None:
    trusted = ssl.create_default_context(cafile=stack.environment["SSL_CERT_FILE"])
    with httpx.Client(proxy=stack.environment["HTTPS_PROXY"], verify=trusted, trust_env=False) as outsider:
        answer = outsider.get(f"https://{stack.outputs()['registry']}/v2/")
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (403, "DENIED")


def test_a_user_without_a_role_has_no_access_inside(stack: Stack) -> None:
    """Only the jump box's identity has the role, not the first phase's deployer."""
    stack.inside = f"ai-on-aks-{NAME}"
    deployer = stack.environment | {"IDENTITY_ENDPOINT": stack.world.environment["IDENTITY_ENDPOINT"]}
    command = ["kubectl", "--context", f"ai-on-aks-{NAME}+ai-on-aks-{NAME}", "get", "nodes"]
    with pytest.raises(CommandFailed, match="User does not have access to the resource in Azure"):
        stack.world.run(command, environment=deployer)


def test_deleting_the_cluster_keeps_network_and_registry(stack: Stack) -> None:
    stack.world.arm("DELETE", f"{CLUSTER}?api-version={API['Microsoft.ContainerService']}")
    for kind in ("Microsoft.Network/virtualNetworks", "Microsoft.ContainerRegistry/registries"):
        version = API[kind.partition("/")[0]]
        (left,) = stack.world.arm("GET", f"{GROUP}/providers/{kind}?api-version={version}")["value"]
        assert left["properties"]["provisioningState"] == "Succeeded"


@pytest.fixture
def in_hub(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    here = GROUPS.removesuffix("rg") + "hub"
    world.arm("PUT", f"{HUB}?api-version={API['resourceGroups']}", {"location": "eastus"})
    bodies = {
        net.ADDRESS: net.address_body(),
        net.GATEWAY: net.gateway_body(net.ADDRESS),
        net.NETWORK: net.network_body(),
        net.NODES: net.subnet_body("10.16.0.0/20", natGateway={"id": net.GATEWAY}, defaultOutboundAccess=False),
        net.ENDPOINTS: net.subnet_body("10.16.16.0/24"),
    }
    for resource, body in bodies.items():
        path = f"{resource.replace(GROUPS, HUB)}?api-version={API['Microsoft.Network']}"
        world.arm("PUT", path, json.loads(json.dumps(body).replace(GROUPS, here)))
    network, nodes, endpoints = (each.replace(GROUPS, here) for each in (net.NETWORK, net.NODES, net.ENDPOINTS))
    settings = {"id": network, "nodeSubnet": nodes, "endpointSubnet": endpoints, "private": True}
    made = Stack.create(
        world, "in-hub", tmp_path_factory.mktemp("in-hub") / "project", {"network": settings}, "private"
    )
    yield made
    made.inside = "hub+ai"
    made.destroy("--remove")
    world.arm("DELETE", f"{HUB}?api-version={API['resourceGroups']}")


def test_in_an_existing_network_one_up_from_inside_deploys_everything(in_hub: Stack) -> None:
    output = in_hub.up(check=False)
    assert "outside" in output
    assert "network.inside" in output
    with pytest.raises(httpx.HTTPStatusError, match="404"):
        in_hub.world.arm("GET", f"resourceGroups/ai-on-aks-in-hub?api-version={API['resourceGroups']}")
    in_hub.inside = "hub+ai"
    in_hub.up()
    eventually(lambda: "VERDICT: PASS" in verdict(in_hub), "the NCCL job passes", 240)
