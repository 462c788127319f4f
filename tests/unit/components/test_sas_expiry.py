from __future__ import annotations

from datetime import timedelta
from typing import Any

import pulumi
import pytest

from components.storage.accounts import Storage
from components.storage.sas import ALERT, expiry_warning, rule
from components.storage.sas_providers import instant
from config.schema.models import Placement
from config.schema.pools import PoolSettings
from config.schema.storage import StorageSettings, next_rotation
from tests.support import mocked_azure
from tests.support.mocked_azure import WINDOW
from tests.support.mocks import deploy, program
from tests.support.settings import settings_with
from tests.support.sizes import H100
from workloads.olmo.options import OlmoOptions

START = "2026-01-01T00:00:00Z"


def warned(after: timedelta, days: int = 7) -> str | None:
    expiry = (instant(START) + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return expiry_warning("data", START, expiry, "1", now=instant(START) + after, stack="dev")


@pytest.mark.parametrize(
    ("after", "days", "message"),
    [(4, 7, ""), (300, 365, ""), (5, 7, "ends at"), (351, 365, "ends at"), (2, 3, "ends at"), (8, 7, "ended at")],
)
def test_warns_of_a_sas_that_ends_soon_or_has_ended(after: int, days: int, message: str) -> None:
    text = warned(timedelta(days=after), days) or ""
    assert bool(text) == bool(message)
    assert f"container data {message}" in text or not message
    assert text.endswith("pulumi config set -s dev --path storage.rotation 2 && pulumi up -s dev") or not message


@pytest.mark.parametrize(("now", "then"), [("1", "2"), ("9", "10"), ("2026-01", "2026-02"), ("spring", "spring-2")])
def test_the_next_rotation_differs_from_the_current_one(now: str, then: str) -> None:
    assert next_rotation(now) == then


@pytest.mark.parametrize(("expiry", "count"), [("2026-01-08T00:00:00Z", 1), (WINDOW["expiry"], 0)])
def test_each_update_warns_of_an_unused_sas_that_has_ended(
    expiry: str, count: int, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    monkeypatch.setitem(mocked_azure.ADDED, "SasWindow", {"start": START, "expiry": expiry})
    declared_for("data")
    assert len(warnings) == count


OLMO = Placement("olmo", "olmo", OlmoOptions(), "gpu", PoolSettings(vm_sku="Standard_ND96isr_H100_v5"), nodes=1)
ENDED = {"start": START, "expiry": "2026-01-08T00:00:00Z"}


def declared_for(container: str, **sas: Any) -> None:
    """OLMo mounts olmo-data and olmo-checkpoints."""
    settings = StorageSettings.model_validate({"containers": {container: sas}})
    stack = settings_with(storage=settings, placements={"olmo": OLMO})
    deploy(lambda: Storage("storage", stack, pulumi.Output.from_input("group"), settings.all_accounts()[0]))


@pytest.mark.parametrize("kind", ["service", "user-delegation"])
def test_rejects_a_sas_that_has_ended_if_a_workload_mounts_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(mocked_azure.ADDED, "SasWindow", ENDED)
    with pytest.raises(pulumi.RunError) as refusal:
        declared_for("olmo-data", sas=kind)
    assert "the SAS of container olmo-data ended at 2026-01-08T00:00:00Z" in str(refusal.value)
    assert "pulumi config set -s test --path storage.rotation 2 && pulumi up -s test" in str(refusal.value)
    assert "olmo would wait for the container forever" in str(refusal.value)


MONITORED: dict[str, Any] = {"kubePrometheusStack": {"enabled": True}}
CONTAINERS: dict[str, Any] = {"data": {}, "results": {}}
RULE = ":PrometheusRule"
HOURS = 3600


def monitored(**more: Any) -> Any:
    return program({"vmSku": H100, "nodeCount": 1, "workloads": "nccl-allreduce"} | more)


def test_the_alert_fires_after_two_thirds_of_the_window() -> None:
    made = rule("data", "1970-01-01T00:00:00Z", "1970-01-02T06:00:00Z", fix="pulumi up")
    assert made["expr"] == f"vector({30 * HOURS}) - time() < {10 * HOURS}"


def test_each_container_has_an_alert_with_the_command_that_renews_its_sas() -> None:
    made = monitored(operators=MONITORED, storage={"containers": CONTAINERS})
    (group,) = made.one(RULE, "sas-ends").inputs["spec"]["groups"]
    assert {each["labels"]["container"] for each in group["rules"]} == CONTAINERS.keys()
    assert {each["alert"] for each in group["rules"]} == {ALERT}
    assert all("--path storage.rotation 2" in each["annotations"]["description"] for each in group["rules"])


@pytest.mark.parametrize(
    "settings",
    [
        {"storage": {"containers": CONTAINERS}},
        {"operators": MONITORED, "storage": {"containers": CONTAINERS, "auth": "identity"}},
    ],
    ids=["no monitoring", "no SAS"],
)
def test_creates_no_alerts_without_monitoring_or_sas(settings: dict[str, Any]) -> None:
    assert not [each for each in monitored(**settings).registered if each.name == "sas-ends"]
