"""SAS that end: said while there is time, refused where a workload would wait for a mount for ever."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pulumi
import pytest

from components.sas import expiry_warning
from components.sas_providers import instant
from components.storage import Storage
from config.schema.models import Placement
from config.schema.pools import PoolSettings
from config.schema.storage import StorageSettings, next_rotation
from tests.support import mocked_azure
from tests.support.mocked_azure import WINDOW
from tests.support.mocks import deploy
from tests.support.settings import settings_with
from workloads.olmo.options import OlmoOptions

START = "2026-01-01T00:00:00Z"


def warned(after: timedelta, days: int = 7) -> str | None:
    expiry = (instant(START) + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return expiry_warning("data", START, expiry, "1", now=instant(START) + after, stack="dev")


def test_a_young_sas_is_not_spoken_of() -> None:
    assert warned(timedelta(days=4)) is None
    assert warned(timedelta(days=300), days=365) is None


@pytest.mark.parametrize(("days", "left"), [(7, 2), (365, 14), (3, 1)])
def test_one_that_ends_soon_is(days: int, left: int) -> None:
    text = warned(timedelta(days=days - left), days)
    assert text is not None
    assert "container data ends at" in text
    assert text.endswith("pulumi config set -s dev --path storage.rotation 2 && pulumi up -s dev")


def test_a_stack_on_anothers_platform_is_told_where_to_rotate() -> None:
    expiry = "2026-01-08T00:00:00Z"
    text = expiry_warning("data", START, expiry, "1", now=instant(expiry), stack="organization/ai-on-aks/dev")
    assert text is not None
    assert (
        "set -s organization/ai-on-aks/dev --path storage.rotation 2 && pulumi up -s organization/ai-on-aks/dev" in text
    )


def test_one_that_has_ended_says_so() -> None:
    assert "container data ended at 2026-01-08T00:00:00Z" in (warned(timedelta(days=8)) or "")


@pytest.mark.parametrize(("now", "then"), [("1", "2"), ("9", "10"), ("2026-01", "2026-02"), ("spring", "spring-2")])
def test_the_next_rotation_is_another_text(now: str, then: str) -> None:
    assert next_rotation(now) == then


@pytest.mark.parametrize(("expiry", "warnings"), [("2026-01-08T00:00:00Z", 1), (WINDOW["expiry"], 0)])
def test_every_update_and_preview_says_it(expiry: str, warnings: int, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text: said.append(text))
    monkeypatch.setitem(mocked_azure.ADDED, "SasWindow", {"start": START, "expiry": expiry})
    declared_for("data")
    assert len(said) == warnings


# -- one that has ended ------------------------------------------------------------------------------------------------

OLMO = Placement("olmo", "olmo", OlmoOptions(), "gpu", PoolSettings(vm_sku="Standard_ND96isr_H100_v5"), nodes=1)
ENDED = {"start": START, "expiry": "2026-01-08T00:00:00Z"}


def declared_for(container: str, **sas: Any) -> None:
    """By a stack in which OLMo runs, which uses the containers olmo-data and olmo-checkpoints."""
    settings = StorageSettings.model_validate({"containers": {container: sas}})
    stack = settings_with(storage=settings, placements={"olmo": OLMO})
    deploy(lambda: Storage("storage", stack, pulumi.Output.from_input("group"), settings.all_accounts()[0]))


@pytest.mark.parametrize("kind", ["service", "user-delegation"])
def test_a_sas_that_has_ended_is_refused_where_a_workload_mounts_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(mocked_azure.ADDED, "SasWindow", ENDED)
    with pytest.raises(pulumi.RunError) as refusal:
        declared_for("olmo-data", sas=kind)
    assert "the SAS of container olmo-data ended at 2026-01-08T00:00:00Z" in str(refusal.value)
    assert "pulumi config set -s test --path storage.rotation 2 && pulumi up -s test" in str(refusal.value)
    assert "olmo would wait for it for ever" in str(refusal.value)


def test_elsewhere_it_is_only_spoken_of(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setitem(mocked_azure.ADDED, "SasWindow", ENDED)
    monkeypatch.setattr(pulumi.log, "warn", lambda text: said.append(text))
    declared_for("archive")
    assert ["container archive ended" in text for text in said] == [True]
