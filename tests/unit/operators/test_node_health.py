"""What becomes of nodes that have failed, and who may say that they have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import pytest

from config.data.scheduling import AUTOPILOT_LABEL, BAD_NODE
from operators.node_health import NodeHealthSettings, pod_spec
from tests.support.docker_modules import imported

Object = dict[str, Any]
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
LABEL, _, VALUE = BAD_NODE.partition("=")
EVICT = {AUTOPILOT_LABEL: "EVICT"}
SKU = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return imported("node-health", "node_health")


def node(*effects: str, labels: Object | None = None, failed: datetime | None = None, **annotations: str) -> Object:
    taints = [{"key": "aznhc", "value": "failed", "effect": effect} for effect in effects]
    notes = {**({"aznhc-failed": f"{failed:%Y-%m-%dT%H:%M:%SZ}"} if failed else {}), **annotations}
    metadata = {"name": "n", "resourceVersion": "7", "labels": labels or {}, "annotations": notes}
    return {"metadata": metadata, "spec": {"taints": [SKU, *taints]}, "status": {"conditions": []}}


def changed(script: ModuleType, found: Object, **variables: str) -> Object:
    """The patch, by the variables that the CronJob's pod has."""
    (container,) = pod_spec("image", NodeHealthSettings())["containers"]
    given = {entry["name"]: entry["value"] for entry in container["env"]} | variables
    body, _ = script.change(found, script.Rules.of(given), NOW)
    return dict(body)


def test_what_autopilot_has_found_counts_as_a_failed_check(script: ModuleType) -> None:
    body = changed(script, node(labels=EVICT))
    assert body["spec"]["taints"] == [SKU, {"key": "aznhc", "value": "failed", "effect": "NoSchedule"}]
    # The list of taints is replaced whole: the API server refuses it for a node that has changed.
    assert body["metadata"]["resourceVersion"] == "7"
    assert body["metadata"]["annotations"] == {
        "aznhc-verdict": f"VERDICT: FAIL label {AUTOPILOT_LABEL}=EVICT",
        "aznhc-results": f"VERDICT: FAIL label {AUTOPILOT_LABEL}=EVICT",
        "aznhc-failed": "2026-11-26T12:00:00Z",
    }


def test_so_does_a_condition_that_is_listed_and_has_been_true_for_a_while(script: ModuleType) -> None:
    found = node()
    found["status"]["conditions"] = [
        {"type": "GpuLost", "status": "Unknown"},
        {"type": "Other", "status": "True"},
    ]
    assert changed(script, found, BAD_CONDITIONS="GpuLost") == {}
    lost = {"type": "GpuLost", "status": "True", "message": "7 of 8"}
    found["status"]["conditions"][:] = [{**lost, "lastTransitionTime": "2026-11-26T11:59:00Z"}]
    assert changed(script, found, BAD_CONDITIONS="GpuLost") == {}  # it may pass by itself
    found["status"]["conditions"][:] = [{**lost, "lastTransitionTime": "2026-11-26T11:58:00Z"}]
    body = changed(script, found, BAD_CONDITIONS="GpuLost")
    assert body["metadata"]["annotations"]["aznhc-results"] == "VERDICT: FAIL condition GpuLost: 7 of 8"


def test_jobs_get_their_time_from_when_it_is_first_seen(script: ModuleType) -> None:
    body = changed(script, node("NoSchedule"))
    assert body["metadata"]["annotations"] == {"aznhc-failed": "2026-11-26T12:00:00Z"}
    assert "spec" not in body
    assert changed(script, node("NoSchedule", failed=NOW - timedelta(minutes=59))) == {}


def test_app_wrapper_gets_the_label_one_round_before_jobs_have_to_go(script: ModuleType) -> None:
    """AppWrapper moves a job without using a retry only while its pods still run."""
    failed = NOW - timedelta(minutes=60)
    body = changed(script, node("NoSchedule", failed=failed))
    assert body["metadata"]["labels"] == {LABEL: VALUE}
    assert "spec" not in body
    body = changed(script, node("NoSchedule", failed=failed, labels={LABEL: VALUE}, **{"aznhc-labelled": "true"}))
    assert body["spec"]["taints"] == [SKU, {"key": "aznhc", "value": "failed", "effect": "NoExecute"}]
    assert body["metadata"] == {"resourceVersion": "7"}


@pytest.mark.parametrize("found", [node(labels=EVICT), node("NoSchedule")])
def test_no_execute_labels_at_once_and_ends_jobs_in_the_next_round(script: ModuleType, found: Object) -> None:
    body = changed(script, found, TAINT_EFFECT="NoExecute")
    assert body["metadata"]["labels"] == {LABEL: VALUE}
    assert not body.get("spec") or body["spec"]["taints"][-1]["effect"] == "NoSchedule"
    labelled = node("NoSchedule", failed=NOW, labels={LABEL: VALUE}, **{"aznhc-labelled": "true"})
    assert changed(script, labelled, TAINT_EFFECT="NoExecute")["spec"]["taints"][-1]["effect"] == "NoExecute"


def test_a_check_itself_never_ends_jobs() -> None:
    assert NodeHealthSettings(taint_effect="NoExecute").failure_effect == "NoSchedule"


def test_no_execute_set_by_hand_is_labelled_too(script: ModuleType) -> None:
    body = changed(script, node("NoExecute"))
    assert body["metadata"]["labels"] == {LABEL: VALUE}
    assert "spec" not in body


def test_when_the_taint_is_gone_so_is_all_else_that_is_its_own(script: ModuleType) -> None:
    notes = {"aznhc-labelled": "true", "aznhc-results": "VERDICT: PASS"}
    body = changed(script, node(labels={LABEL: VALUE}, failed=NOW, **notes))
    assert body["metadata"]["labels"] == {LABEL: None}
    assert body["metadata"]["annotations"] == {"aznhc-failed": None, "aznhc-labelled": None}


def test_a_label_that_somebody_else_has_set_stays(script: ModuleType) -> None:
    assert changed(script, node(labels={LABEL: VALUE})) == {}
