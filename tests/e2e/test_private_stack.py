"""`Pulumi.private.yaml` in its two phases, and the same in a network that is there already. In the file's order.

The smallest stack with a private API server and a private registry: what is outside of its network reaches neither.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator

import httpx
import pytest
import yaml

from simulator.host import paths
from simulator.kube.client import KubeClient
from tests.support import networks as net
from tests.support.arm import API
from tests.support.arm import GROUP as GROUPS
from tests.support.world import CommandFailed, Stack, World, eventually, names

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
    take_down = [
        "pulumi",
        "destroy",
        "--refresh",
        "--yes",
        "--skip-preview",
        "--remove",
        "--stack",
        NAME,
        "--non-interactive",
    ]
    from_outside = world.environment | {"PULUMI_K8S_DELETE_UNREACHABLE": "true"}  # as docs/way-in.md says
    world.run(take_down, cwd=made.folder, environment=from_outside)


def pools(stack: Stack) -> set[str]:
    version = API["Microsoft.ContainerService"]
    listed = stack.world.arm("GET", f"{CLUSTER}/agentPools?api-version={version}")["value"]
    return {pool["name"] for pool in listed}


def kubectl(stack: Stack, *arguments: str) -> str:
    """What kubectl prints where the stack is run from. Raises CommandFailed."""
    return stack.world.run(
        ["kubectl", "--context", f"ai-on-aks-{NAME}+ai-on-aks-{NAME}", *arguments], environment=stack.environment
    ).stdout


def test_from_outside_there_is_a_first_phase_which_says_how_to_go_on(stack: Stack) -> None:
    told = stack.up()
    assert "This machine is outside the network that the stack makes" in told
    assert stack.outputs()["next"].startswith("az network bastion ssh ")
    assert pools(stack) == {"system"}
    with pytest.raises(CommandFailed, match=NO_SUCH_HOST):
        kubectl(stack, "get", "nodes")


def test_the_jump_box_goes_and_comes_back(stack: Stack) -> None:
    """Its subnets stay: Azure would refuse to take them away before it."""
    chosen = yaml.safe_load((paths.ROOT / "Pulumi.private.yaml").read_text())["config"]["ai-on-aks:network"]
    machines = f"{GROUP}/providers/Microsoft.Compute/virtualMachines?api-version={API['Microsoft.Compute']}"
    stack.set(network={key: value for key, value in chosen.items() if key != "jumpBox"})
    assert "and its Bastion go" in stack.up()
    assert stack.world.arm("GET", machines)["value"] == []
    stack.set(network=chosen)
    stack.up()
    assert len(stack.world.arm("GET", machines)["value"]) == 1


def test_inside_the_rest_follows_as_the_machine_there(stack: Stack) -> None:
    stack.inside = f"ai-on-aks-{NAME}"
    stack.up()
    assert len(pools(stack)) == 2
    eventually(lambda: "VERDICT: PASS" in verdict(stack), "the NCCL job passes", 240)
    assert "cluster-admin" not in kubectl(stack, "auth", "whoami")
    assert stack.pulumi("preview", "--expect-no-changes")


def verdict(stack: Stack) -> str:
    """What the launcher of its NCCL job wrote; empty until it runs."""
    kube = stack.world.kube(stack.name)
    pods = kube.list("v1", "Pod", "ai")
    ended = [name for name in names(pods) if name.endswith("mpimaster-0")]
    return "".join(kube.text(f"/api/v1/namespaces/ai/pods/{name}/log") for name in ended if _succeeded(kube, name))


def _succeeded(kube: KubeClient, pod: str) -> bool:
    phase: str = kube.get("v1", "Pod", pod, "ai")["status"]["phase"]
    return phase == "Succeeded"


def test_outside_it_is_refused_from_now_on_and_nothing_is_taken_down(stack: Stack) -> None:
    before, stack.inside = pools(stack), ""
    told = stack.up(check=False)
    assert stack.returncode != 0
    assert "outside" in told
    assert "az aks command invoke" in told
    assert pools(stack) == before


def test_outside_the_registry_lets_nobody_in(stack: Stack) -> None:
    trusted = ssl.create_default_context(cafile=stack.environment["SSL_CERT_FILE"])
    with httpx.Client(proxy=stack.environment["HTTPS_PROXY"], verify=trusted, trust_env=False) as outsider:
        answer = outsider.get(f"https://{stack.outputs()['registry']}/v2/")
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (403, "DENIED")


def test_who_has_no_role_is_refused_inside_too(stack: Stack) -> None:
    """The deployer, who made the first phase: the machine of the network has the role, and nobody else."""
    stack.inside = f"ai-on-aks-{NAME}"
    deployer = stack.environment | {"IDENTITY_ENDPOINT": stack.world.environment["IDENTITY_ENDPOINT"]}
    asked = ["kubectl", "--context", f"ai-on-aks-{NAME}+ai-on-aks-{NAME}", "get", "nodes"]
    with pytest.raises(CommandFailed, match="User does not have access to the resource in Azure"):
        stack.world.run(asked, environment=deployer)


def test_the_cluster_goes_and_network_and_registry_stay(stack: Stack) -> None:
    stack.world.arm("DELETE", f"{CLUSTER}?api-version={API['Microsoft.ContainerService']}")
    for kind in ("Microsoft.Network/virtualNetworks", "Microsoft.ContainerRegistry/registries"):
        version = API[kind.partition("/")[0]]
        (left,) = stack.world.arm("GET", f"{GROUP}/providers/{kind}?api-version={version}")["value"]
        assert left["properties"]["provisioningState"] == "Succeeded"


@pytest.fixture
def in_hub(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The same stack in somebody's network, in which whoever deploys is."""
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


def test_in_a_network_that_is_there_all_is_made_at_once_from_inside_and_nothing_from_outside(in_hub: Stack) -> None:
    told = in_hub.up(check=False)
    assert "outside" in told
    assert "network.inside" in told
    with pytest.raises(httpx.HTTPStatusError, match="404"):
        in_hub.world.arm("GET", f"resourceGroups/ai-on-aks-in-hub?api-version={API['resourceGroups']}")
    in_hub.inside = "hub+ai"
    in_hub.up()
    eventually(lambda: "VERDICT: PASS" in verdict(in_hub), "the NCCL job passes", 240)
