from __future__ import annotations

from pathlib import Path

import pytest

from simulator.azure.data_plane import DataPlane
from simulator.azure.registries import Registries, RegistryNotFound
from simulator.world.faults import new_fault
from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, Arm, assignment_body, cluster_body

REGISTRY = f"{GROUP}/providers/Microsoft.ContainerRegistry/registries/aiOnAks1"
IMAGE = "aionaks1.azurecr.io/nccl-test:abc"
BODY = {"location": "eastus", "sku": {"name": "Basic"}}
ACR_PULL = "7f951dda-4ed3-4680-a7ca-43fe172d538d"
GRACE = SUBSCRIPTION.directory["grace"]
ROLE = f"{REGISTRY}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-0000-0000-000000000001"
BLOB_READER = "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"


@pytest.fixture
def registry(cluster: Arm) -> Arm:
    assert cluster.put(REGISTRY, BODY).status_code == 201
    return cluster


def images(arm: Arm) -> Registries:
    return arm.server.world.registries


def may_pull(arm: Arm, image: str = IMAGE) -> str | None:
    return DataPlane(arm.server.world, arm.server.tokens).may_pull(CLUSTER, image)


def kubelet(arm: Arm) -> str:
    identity: str = arm.get(CLUSTER)["properties"]["identityProfile"]["kubeletidentity"]["objectId"]
    return identity


def attach(arm: Arm, role: str = ACR_PULL, scope: str = REGISTRY, **properties: str) -> str:
    """Assigns a role like `az aks update --attach-acr`."""
    return arm.assign(role, scope, kubelet(arm), **properties)


def test_a_cluster_with_acr_pull_can_pull_an_image(registry: Arm) -> None:
    images(registry).push("aionaks1", "nccl-test", "abc")
    attach(registry)
    assert may_pull(registry) is None
    assert images(registry).images("AiOnAks1") == ["nccl-test:abc"]
    assert registry.get(REGISTRY)["properties"]["loginServer"] == "aionaks1.azurecr.io", "lower case"


def test_a_pull_needs_acr_pull(registry: Arm) -> None:
    images(registry).push("aionaks1", "nccl-test", "abc")
    assert str(may_pull(registry)).endswith("401 Unauthorized")
    path = attach(registry, BLOB_READER)
    assert str(may_pull(registry)).endswith("401 Unauthorized"), "an unrelated role"
    registry.call("DELETE", path)
    attach(registry, scope=GROUP)
    assert may_pull(registry) is None, "a role on the group is sufficient"


@pytest.mark.parametrize("image", [IMAGE, "aionaks1.azurecr.io/nccl-test", "aionaks1.azurecr.io/olmo/train:abc"])
def test_rejects_a_pull_of_a_missing_image(registry: Arm, image: str) -> None:
    attach(registry)
    images(registry).push("aionaks1", "nccl-test", "another")
    reason = str(may_pull(registry, image))
    assert reason.startswith(f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": ')
    assert reason.endswith(": not found")


def test_rejects_a_pull_from_a_missing_registry(registry: Arm) -> None:
    assert str(may_pull(registry, "nowhere.azurecr.io/x:1")).endswith("lookup nowhere.azurecr.io: no such host")


@pytest.mark.parametrize("image", ["mcr.microsoft.com/oss/pause:3.9", "ubuntu:24.04", "nvcr.io/nvidia/driver"])
def test_allows_pulls_from_other_registries(registry: Arm, image: str) -> None:
    assert may_pull(registry, image) is None


def test_deletes_the_images_with_the_registry(registry: Arm) -> None:
    images(registry).push("aionaks1", "nccl-test", "abc")
    role = attach(registry)
    registry.call("DELETE", REGISTRY)
    assert registry.call("GET", role).status_code == 404, "its role assignments are deleted too"
    registry.put(REGISTRY, BODY)
    assert images(registry).images("aionaks1") == []


def test_rejects_a_push_to_a_missing_registry(tmp_path: Path) -> None:
    with pytest.raises(RegistryNotFound, match=r"registry nowhere\.azurecr\.io does not exist\. To create"):
        Registries(tmp_path).push("nowhere", "nccl-test", "abc")


@pytest.mark.parametrize(("repository", "tag"), [("../up", "1"), ("NCCL", "1"), ("a//b", "1"), ("a", ""), ("a", "b/c")])
def test_rejects_a_push_of_an_invalid_name(tmp_path: Path, repository: str, tag: str) -> None:
    registries = Registries(tmp_path)
    registries.add("mine")
    with pytest.raises(ValueError, match=r"is not a (repository|tag)"):
        registries.push("mine", repository, tag)


# -- roles and principals ----------------------------------------------------------------------------------------------


def test_a_new_role_is_delayed_by_a_fault(registry: Arm) -> None:
    images(registry).push("aionaks1", "nccl-test", "abc")
    registry.server.world.faults.fault(new_fault("roles"))
    attach(registry, principalType="ServicePrincipal")
    assert str(may_pull(registry)).endswith("401 Unauthorized")
    registry.server.world.faults.heal()
    assert may_pull(registry) is None
    registry.server.world.faults.fault(new_fault("roles"))
    assert may_pull(registry) is None, "older roles still apply"


def test_a_new_principal_is_unknown_without_its_type(arm: Arm) -> None:
    arm.server.world.faults.fault(new_fault("roles"))
    for path, body in ((GROUP, {"location": "eastus"}), (CLUSTER, cluster_body()), (REGISTRY, BODY)):
        assert arm.put(path, body).status_code == 201
    arm.done()
    status, code, message = arm.refusal(arm.put(ROLE, assignment_body(ACR_PULL, kubelet(arm))))
    assert (status, code) == (400, "PrincipalNotFound")
    assert "set the role assignment principalType property" in message
    attach(arm, principalType="ServicePrincipal")
    arm.server.world.faults.heal()
    arm.call("DELETE", ROLE)
    attach(arm)
    assert arm.get(ROLE)["properties"]["principalType"] == "ServicePrincipal"


UNKNOWN = "00000000-0000-4000-8000-00000000ffff"


@pytest.mark.parametrize(
    ("principal", "given", "found"),
    [
        (GRACE.object_id, {}, "User"),
        (GRACE.groups[0], {}, "Group"),
        (SUBSCRIPTION.object_id, {}, "ServicePrincipal"),
        (UNKNOWN, {"principalType": "User"}, "User"),
        (UNKNOWN, {}, "PrincipalNotFound"),
        (GRACE.object_id, {"principalType": "ServicePrincipal"}, "UnmatchedPrincipalType"),
    ],
)
def test_a_principal_has_the_type_of_the_directory(
    registry: Arm, principal: str, given: dict[str, str], found: str
) -> None:
    answer = registry.put(ROLE, assignment_body(ACR_PULL, principal, **given))
    if answer.is_success:
        assert answer.json()["properties"]["principalType"] == found
    else:
        assert registry.refusal(answer)[:2] == (400, found)
