from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import pulumi
import pytest

from components.azure.roles import RBAC_ADMINISTRATOR, only
from components.preflight.azure import check_rights, check_subscription
from components.preflight.existing import check_existing
from components.preflight.features import check_infiniband, refusal
from config.data.azure_roles import guid
from config.data.skus import sku
from config.rules.subscription import PROVIDERS
from config.schema.models import Settings
from config.schema.network import NetworkSettings
from config.schema.pools import PoolSettings, agent_pool_name
from config.schema.storage import StorageSettings
from tests.support.case_files import case_table
from tests.support.golden import PUBLIC_KEY
from tests.support.lookups import Answer, answer
from tests.support.mocked_azure import DEPLOYER, SUBSCRIPTION, Azure, EngineError
from tests.support.mocks import deploy
from tests.support.settings import settings_with
from tests.support.sizes import H100, T4

SYSTEM = "Standard_D8ads_v5"
OWNER = guid("Owner")
SCOPE = f"/subscriptions/{SUBSCRIPTION}"
USAGES = f"{SCOPE}/providers/Microsoft.Compute/locations/eastus/usages?api-version=2024-07-01"
SIZES = f"{SCOPE}/providers/Microsoft.Compute/skus?api-version=2021-07-01&$filter=location%20eq%20%27eastus%27"
PERMISSIONS = "providers/Microsoft.Authorization/permissions?api-version=2022-04-01"
_HELD = quote(f"atScope() and assignedTo('{DEPLOYER}')")
ASSIGNMENTS = f"providers/Microsoft.Authorization/roleAssignments?api-version=2022-04-01&$filter={_HELD}"


def rights(group: str) -> set[str]:
    """Returns the paths of the deployer's right to assign roles and of its conditions."""
    scopes = (SCOPE, f"{SCOPE}/resourceGroups/{group}")
    return {f"{scope}/{what}" for scope in scopes for what in (PERMISSIONS, ASSIGNMENTS)}


pytestmark = pytest.mark.usefixtures("azure")


def pools(count: int, vm_sku: str = H100) -> Settings:
    return settings_with(pools={"gpu": PoolSettings(vm_sku=vm_sku, count=count)})


def check(settings: Settings, there: Mapping[str, tuple[str, int]] | None = None) -> None:
    """`there` are an existing cluster's pools by ARM name."""
    found = {name: {"vmSize": size, "count": count} for name, (size, count) in (there or {}).items()}
    azure = Azure(cluster=there is not None, pools=found)
    deploy(lambda: check_subscription(settings, check_existing(settings), {}), azure)


def asked(azure: Mapping[str, Answer]) -> set[str]:
    return {part.partition("https://management.azure.com")[2] for part in azure if part.startswith("asked")}


def test_checks_everything_for_a_new_stack(azure: dict[str, Answer]) -> None:
    check(pools(2))
    assert {path for path in asked(azure) if "api-version=2021-04-01" not in path} == {
        USAGES,
        SIZES,
        *rights("ai-on-aks-test"),
    }
    providers = {path.rpartition("/")[2].partition("?")[0] for path in asked(azure) if "api-version=2021-04-01" in path}
    assert providers == set(PROVIDERS)


@pytest.mark.parametrize(("count", "paths"), [(2, set()), (1, set()), (3, {USAGES, SIZES})])
def test_checks_only_growing_pools_of_an_existing_stack(count: int, paths: set[str], azure: dict[str, Answer]) -> None:
    settings = pools(count)
    name = agent_pool_name("gpu", settings.pools["gpu"])
    check(settings, {"system": (SYSTEM, 3), name: (H100, 2)})
    assert asked(azure) == paths


def test_checks_rights_for_identities_of_an_existing_stack(azure: dict[str, Answer]) -> None:
    settings = settings_with(storage=StorageSettings(auth="identity"))
    there = {"system": (SYSTEM, 3)}
    check(settings, there)
    providers = {f"{SCOPE}/providers/Microsoft.ManagedIdentity?api-version=2021-04-01"}
    assert asked(azure) == rights("ai-on-aks-test") | providers
    azure["/permissions"] = answer({"value": []})
    with pytest.raises(pulumi.RunError, match="cannot assign roles"):
        check(settings, there)


def test_checks_rights_in_the_group_of_a_shared_platform(azure: dict[str, Answer]) -> None:
    deploy(lambda: check_rights("theirs", "eastus"))
    assert asked(azure) == rights("theirs")
    azure["/permissions"] = answer({"value": []})
    with pytest.raises(pulumi.RunError, match="cannot assign roles"):
        deploy(lambda: check_rights("theirs", "eastus"))


def test_names_all_pools_of_a_size_that_the_region_does_not_offer(azure: dict[str, Answer]) -> None:
    azure["/skus"] = answer({"value": [{"resourceType": "virtualMachines", "name": SYSTEM, "locations": ["eastus"]}]})
    with pytest.raises(pulumi.RunError, match=r"\(pool a, pool b\) is not offered"):
        check(settings_with(pools={key: PoolSettings(vm_sku=T4) for key in "ab"}))


def test_rights_on_the_group_override_those_on_the_subscription(azure: dict[str, Answer]) -> None:
    azure[f"{SCOPE}/providers/Microsoft.Authorization"] = answer({"value": []})
    check(pools(2))
    azure["/resourceGroups/"] = answer({"error": {"code": "ResourceGroupNotFound"}}, 404)
    with pytest.raises(pulumi.RunError, match="cannot assign roles"):
        check(pools(2))


def test_warns_of_a_condition_that_excludes_the_roles_of_a_jump_box(
    azure: dict[str, Answer], warnings: list[str]
) -> None:
    """Azure's page on delegation excludes roles that may assign roles."""
    condition = only([OWNER, RBAC_ADMINISTRATOR]).replace(
        "ForAnyOfAnyValues:GuidEquals", "ForAnyOfAllValues:GuidNotEquals"
    )
    held = {"roleDefinitionId": f"{SCOPE}/x/{RBAC_ADMINISTRATOR}", "condition": condition}
    azure["/roleAssignments"] = answer({"value": [{"properties": held}]})
    check(pools(2))
    assert not warnings
    network = {"private": True, "addressSpace": "10.0.0.0/16", "jumpBox": {"sshPublicKey": PUBLIC_KEY}}
    check(settings_with(pools=pools(2).pools, network=NetworkSettings.model_validate(network)))
    (message,) = warnings
    assert "only under a condition, which excludes Role Based Access Control Administrator\n" in message


def test_warns_of_lookups_that_are_forbidden(azure: dict[str, Answer], warnings: list[str]) -> None:
    azure["api-version"] = answer({"error": {"code": "AuthorizationFailed"}}, 403)
    check(pools(2))
    assert len(warnings) == 9
    first = (
        "vCPU quota of eastus could not be looked up in Azure: 403 AuthorizationFailed. Azure may reject the update "
    )
    assert warnings[0] == f"{first}later."


@pytest.mark.parametrize("body", [{"value": [None]}, {"value": 5}, {"value": [{"limit": "many", "actions": 3}]}])
def test_warns_of_unexpected_answers(body: object, azure: dict[str, Answer], warnings: list[str]) -> None:
    for part in ("/usages", "/skus", "/permissions"):
        azure[part] = answer(body)
    check(pools(2))
    assert len([each for each in warnings if "could not be" in each]) >= 3


def test_warns_without_a_token(azure: dict[str, Answer], warnings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise RuntimeError("not logged in")

    monkeypatch.setattr("components.preflight.arm.authorization.get_client_token", refuse)
    check(pools(2))
    assert asked(azure) == set()
    assert len(warnings) == 9
    assert "no token for https://management.azure.com: not logged in" in warnings[0]


REGISTER = "az feature register --namespace Microsoft.ContainerService --name AKSInfinibandSupport"
UNREGISTER = "az feature unregister --namespace Microsoft.ContainerService --name AKSInfinibandSupport"
PROPAGATE = "az provider register --namespace Microsoft.ContainerService"


@case_table(__file__, "fabrics", register=REGISTER, unregister=UNREGISTER, propagate=PROPAGATE)
def test_the_feature_must_match_the_vm_size(size: str, state: str, message: str, commands: list[str]) -> None:
    why = refusal({"gpu": sku(size), "t4": sku(T4)}, state)
    assert (why is None) is (message == "")
    text = why or ""
    assert message in text
    assert f"gpu ({size})" in text or not message
    assert "t4 (" not in text
    assert [line.strip() for line in text.splitlines() if line.strip() in (REGISTER, UNREGISTER, PROPAGATE)] == commands


def check_feature(size: str, state: str) -> Azure:
    azure = Azure(feature=state)
    deploy(lambda: check_infiniband({"gpu": PoolSettings(vm_sku=size)}), azure)
    return azure


def test_reads_the_feature_from_the_subscription() -> None:
    azure = check_feature(H100, "Registered")
    arguments = {"featureName": "AKSInfinibandSupport", "providerNamespace": "Microsoft.ContainerService"}
    assert azure.calls == [("azure-native:features:getSubscriptionFeatureRegistration", arguments)]
    with pytest.raises(pulumi.RunError, match="AKSInfinibandSupport must be registered"):
        check_feature(H100, "NotRegistered")


def test_explains_a_cloud_without_the_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> object:
        raise EngineError('Code="FeatureNotFound" Message="The feature \'AKSInfinibandSupport\' could not be found."')

    monkeypatch.setattr(Azure, "call", refuse)
    with pytest.raises(pulumi.RunError, match="FeatureNotFound.*\n.*Azure Government"):
        check_feature(H100, "")


def test_does_not_read_the_feature_without_infiniband() -> None:
    assert check_feature(T4, "NotRegistered").calls == []
