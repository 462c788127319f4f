"""Management locks: which stop an update, and which are a warning."""

from __future__ import annotations

from typing import Any

import pytest

from components.preflight.locks import LOCKS, lock_objections

SUBSCRIPTION = "/subscriptions/00000000-0000-4000-8000-000000000001"
GROUP = f"{SUBSCRIPTION}/resourceGroups/ai-dev"
ACCOUNT = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/aidev"


def lock(scope: str, level: str) -> dict[str, Any]:
    return {"id": f"{scope}{LOCKS}/keep", "name": "keep", "properties": {"level": level}}


@pytest.mark.parametrize(
    ("scope", "level", "replaced", "stops", "what"),
    [
        (GROUP, "ReadOnly", [], True, "Azure refuses every change of the stack"),
        (SUBSCRIPTION, "ReadOnly", [], True, "Azure refuses every change of the stack"),
        (GROUP.replace("ai-dev", "AI-Dev"), "CanNotDelete", ["the old pool gpu"], True, "to delete the old pool gpu"),
        (SUBSCRIPTION, "CanNotDelete", ["the old pool gpu"], True, "to delete the old pool gpu"),
        (GROUP, "CanNotDelete", [], False, "a `pulumi destroy`, or an update that does it, fails half-way"),
        (ACCOUNT, "CanNotDelete", ["the old pool gpu"], False, "Azure refuses to delete what is there"),
        (ACCOUNT, "ReadOnly", [], False, "Azure refuses to change or delete what is there"),
    ],
)
def test_a_lock_stops_what_it_forbids(scope: str, level: str, replaced: list[str], stops: bool, what: str) -> None:
    (found,) = lock_objections([lock(scope, level)], GROUP, replaced)
    assert found.stops is stops
    assert found.what.startswith(f"lock keep ({level}) of {scope}: ")
    assert what in found.what
    show, delete = found.steps
    assert show.startswith(f"az lock show --ids {scope}{LOCKS}/keep ")
    assert delete.startswith(f"az lock delete --ids {scope}{LOCKS}/keep    # only if you decide that it may go")


def test_a_lock_that_two_answers_have_is_reported_once() -> None:
    assert len(list(lock_objections([lock(GROUP, "CanNotDelete")] * 2, GROUP, []))) == 1
