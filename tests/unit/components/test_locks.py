from __future__ import annotations

from typing import Any

import pulumi
import pytest

from components.preflight.existing import check_existing
from components.preflight.locks import LOCKS, check_locks, lock_objections
from config.schema.pools import agent_pool_name
from tests.support.lookups import Answer, answer
from tests.support.mocked_azure import SUBSCRIPTION, Azure
from tests.support.mocks import deploy
from tests.support.settings import settings_with
from tests.support.sizes import H100

SCOPE = f"/subscriptions/{SUBSCRIPTION}"
GROUP = f"{SCOPE}/resourceGroups/ai-on-aks-test"
OLD = ["the old pool gpu"]
ACCOUNT = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/aidev"

SETTINGS = settings_with(pools={"gpu": {"vmSku": H100, "count": 2}})
HAS = agent_pool_name("gpu", SETTINGS.pools["gpu"])


def lock(scope: str, level: str) -> dict[str, Any]:
    return {
        "id": f"{scope}{LOCKS}/keep",
        "name": "keep",
        "properties": {"level": level},
    }


def check(*pools: str) -> None:
    azure = Azure(cluster=True, pools={name: {"vmSize": H100, "count": 2} for name in pools})
    deploy(lambda: check_locks(SETTINGS, check_existing(SETTINGS)), azure)


def test_reads_locks_of_the_group_and_of_the_subscription(azure: dict[str, Answer], warnings: list[str]) -> None:
    azure[f"{GROUP}{LOCKS}"] = answer({"value": [lock(GROUP, "CanNotDelete")]})
    check(HAS)
    assert len(warnings) == 1
    with pytest.raises(pulumi.RunError, match="Azure refuses to delete the old pool gpu, which this update replaces"):
        check("gpu0a1b")
    azure[f"{SCOPE}{LOCKS}"] = answer({"value": [lock(SCOPE, "ReadOnly")]})
    with pytest.raises(pulumi.RunError, match="Azure refuses every change of the stack"):
        check(HAS)


def test_locks_that_cannot_be_read_are_not_reported(azure: dict[str, Answer], warnings: list[str]) -> None:
    azure["/locks"] = answer({"error": {"code": "AuthorizationFailed"}}, 403)
    check(HAS)
    assert warnings == []


@pytest.mark.parametrize(
    ("scope", "level", "replaced", "stops", "what"),
    [
        (GROUP, "ReadOnly", [], True, "Azure refuses every change of the stack"),
        (SCOPE, "ReadOnly", [], True, "Azure refuses every change of the stack"),
        (GROUP.upper(), "CanNotDelete", OLD, True, "to delete the old pool gpu"),
        (SCOPE, "CanNotDelete", OLD, True, "to delete the old pool gpu"),
        (GROUP, "CanNotDelete", [], False, "`pulumi destroy`, or an update that would delete them, fails"),
        (ACCOUNT, "CanNotDelete", OLD, False, "Azure refuses to delete resources there"),
        (ACCOUNT, "ReadOnly", [], False, "Azure refuses to change or delete resources there"),
    ],
)
def test_a_lock_stops_an_update_that_it_forbids(
    scope: str, level: str, replaced: list[str], stops: bool, what: str
) -> None:
    (found,) = lock_objections([lock(scope, level)], GROUP, replaced)
    assert found.stops is stops
    assert found.what.startswith(f"lock keep ({level}) of {scope}: ")
    assert what in found.what
    show, delete = found.steps
    assert show.startswith(f"az lock show --ids {scope}{LOCKS}/keep ")
    assert delete.startswith(f"az lock delete --ids {scope}{LOCKS}/keep    # only if the lock is not needed")


def test_a_lock_that_two_answers_have_is_reported_once() -> None:
    assert len(list(lock_objections([lock(GROUP, "CanNotDelete")] * 2, GROUP, []))) == 1
