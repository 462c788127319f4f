"""When what is asked of Azure, and what becomes of answers that do not come."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pytest

from components import arm
from components.existing import check_existing
from components.preflight_azure import check_rights, check_subscription
from config.rules.subscription import PROVIDERS
from config.schema.models import Settings
from config.schema.pools import PoolSettings, agent_pool_name
from config.schema.storage import StorageSettings
from tests.support.lookups import Answer, answer, everything
from tests.support.mocks import DEPLOYER, SUBSCRIPTION, Azure, deploy
from tests.support.settings import H100, T4, settings_with

D4 = "Standard_D4ads_v5"
SCOPE = f"/subscriptions/{SUBSCRIPTION}"
USAGES = f"{SCOPE}/providers/Microsoft.Compute/locations/eastus/usages?api-version=2024-07-01"
SIZES = f"{SCOPE}/providers/Microsoft.Compute/skus?api-version=2021-07-01&$filter=location%20eq%20%27eastus%27"
PERMISSIONS = "providers/Microsoft.Authorization/permissions?api-version=2022-04-01"


def pools(count: int, vm_sku: str = H100) -> Settings:
    return settings_with(pools={"gpu": PoolSettings(vm_sku=vm_sku, count=count)})


@pytest.fixture(autouse=True)
def azure(monkeypatch: pytest.MonkeyPatch) -> dict[str, Answer]:
    """Answers that take the place of those that allow everything, by a part of the URL; what was asked is under it."""
    given: dict[str, Answer] = {}

    def fetch(url: str, token: str, timeout: float) -> Answer:
        given[f"asked {url}"] = answer({})
        found = next((found for part, found in given.items() if part in url and not part.startswith("asked")), None)
        return found or everything(url, token, timeout)

    monkeypatch.setattr(arm, "fetch", fetch)
    monkeypatch.setattr(arm, "sleep", lambda _: None)
    monkeypatch.delenv("ARM_METADATA_HOSTNAME", raising=False)
    return given


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", found.append)
    return found


def check(settings: Settings, there: Mapping[str, tuple[str, int]] | None = None) -> None:
    """`there` are the pools of a cluster that is up, by their names in ARM."""
    found = {name: {"vmSize": size, "count": count} for name, (size, count) in (there or {}).items()}
    azure = Azure(cluster=there is not None, pools=found)
    deploy(lambda: check_subscription(settings, check_existing(settings), {}), azure)


def asked(azure: Mapping[str, Answer]) -> set[str]:
    return {part.partition("https://management.azure.com")[2] for part in azure if part.startswith("asked")}


def test_of_a_new_stack_everything_is_asked(azure: dict[str, Answer]) -> None:
    check(pools(2))
    assert {path for path in asked(azure) if "api-version=2021-04-01" not in path} == {
        USAGES,
        SIZES,
        f"{SCOPE}/{PERMISSIONS}",
        f"{SCOPE}/resourceGroups/ai-on-aks-test/{PERMISSIONS}",
    }
    providers = {path.rpartition("/")[2].partition("?")[0] for path in asked(azure) if "api-version=2021-04-01" in path}
    assert providers == set(PROVIDERS)


@pytest.mark.parametrize(("count", "paths"), [(2, set()), (1, set()), (3, {USAGES, SIZES})])
def test_of_a_stack_that_is_up_only_what_grows_is_asked(count: int, paths: set[str], azure: dict[str, Answer]) -> None:
    settings = pools(count)
    name = agent_pool_name("gpu", settings.pools["gpu"])
    check(settings, {"system": (D4, 2), name: (H100, 2)})
    assert asked(azure) == paths


def test_identities_need_rights_for_their_roles_in_a_stack_that_is_up_too(azure: dict[str, Answer]) -> None:
    settings = settings_with(storage=StorageSettings(auth="identity"))
    there = {"system": (D4, 2)}
    check(settings, there)
    rights = {f"{SCOPE}/{PERMISSIONS}", f"{SCOPE}/resourceGroups/ai-on-aks-test/{PERMISSIONS}"}
    providers = {f"{SCOPE}/providers/Microsoft.ManagedIdentity?api-version=2021-04-01"}
    assert asked(azure) == rights | providers
    azure["/permissions"] = answer({"value": []})
    with pytest.raises(pulumi.RunError, match="may not assign roles"):
        check(settings, there)


def test_a_stack_on_anothers_platform_needs_rights_in_that_ones_group(azure: dict[str, Answer]) -> None:
    deploy(lambda: check_rights("theirs", "eastus"))
    assert asked(azure) == {f"{SCOPE}/{PERMISSIONS}", f"{SCOPE}/resourceGroups/theirs/{PERMISSIONS}"}
    azure["/permissions"] = answer({"value": []})
    with pytest.raises(pulumi.RunError, match="may not assign roles"):
        deploy(lambda: check_rights("theirs", "eastus"))


def test_a_pool_that_is_made_without_nodes_needs_its_size_too(azure: dict[str, Answer]) -> None:
    azure["/skus"] = answer({"value": [{"resourceType": "virtualMachines", "name": D4, "locations": ["eastus"]}]})
    with pytest.raises(pulumi.RunError, match=f"{H100} \\(pool gpu\\) is not offered in eastus"):
        check(pools(0), {"system": (D4, 2)})


def test_pools_of_one_size_are_told_together(azure: dict[str, Answer]) -> None:
    azure["/skus"] = answer({"value": [{"resourceType": "virtualMachines", "name": D4, "locations": ["eastus"]}]})
    both = settings_with(pools={key: PoolSettings(vm_sku=T4) for key in "ab"})
    with pytest.raises(pulumi.RunError, match=r"\(pool a, pool b\) is not offered"):
        check(both)


def test_everything_that_is_refused_is_told_at_once(azure: dict[str, Answer], warnings: list[str]) -> None:
    azure["/usages"] = answer({"value": []})
    azure["/skus"] = answer({"value": [{"resourceType": "virtualMachines", "name": D4, "locations": ["eastus"]}]})
    azure["Microsoft.Network?"] = answer({"registrationState": "NotRegistered"})
    azure["/permissions"] = answer({"value": []})
    with pytest.raises(pulumi.RunError) as refused:
        check(pools(2))
    said = str(refused.value)
    assert said.startswith(f"{H100} (pool gpu) is not offered in eastus\n")
    assert "az provider register --namespace Microsoft.Network --wait" in said
    assert f"--assignee {DEPLOYER} --scope {SCOPE} " in said
    assert said.endswith("Nothing was changed. Do this, and then `pulumi up` again.")
    assert len(warnings) == 3  # each quota that Azure does not list
    assert "quota" not in said


def test_rights_on_the_group_are_enough_and_come_first(azure: dict[str, Answer]) -> None:
    azure[f"{SCOPE}/providers/Microsoft.Authorization"] = answer({"value": []})
    check(pools(2))
    azure["/resourceGroups/"] = answer({"error": {"code": "ResourceGroupNotFound"}}, 404)
    with pytest.raises(pulumi.RunError, match="may not assign roles"):
        check(pools(2))


def test_what_may_not_be_read_is_a_warning(azure: dict[str, Answer], warnings: list[str]) -> None:
    azure["api-version"] = answer({"error": {"code": "AuthorizationFailed"}}, 403)
    check(pools(2))
    assert len(warnings) == 8
    assert warnings[0] == (
        "vCPU quota of eastus could not be looked up in Azure: 403 AuthorizationFailed. It may refuse the update later."
    )


@pytest.mark.parametrize("body", [{"value": [None]}, {"value": 5}, {"value": [{"limit": "many", "actions": 3}]}])
def test_an_answer_of_another_shape_is_a_warning(body: object, azure: dict[str, Answer], warnings: list[str]) -> None:
    for part in ("/usages", "/skus", "/permissions"):
        azure[part] = answer(body)
    check(pools(2))
    assert len([each for each in warnings if "could not be" in each]) >= 3


def test_without_a_token_nothing_is_asked(
    azure: dict[str, Answer], warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise RuntimeError("not logged in")

    monkeypatch.setattr("components.arm.authorization.get_client_token", refuse)
    check(pools(2))
    assert asked(azure) == set()
    assert len(warnings) == 8
    assert "no token for https://management.azure.com: not logged in" in warnings[0]
