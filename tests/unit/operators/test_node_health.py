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
    (container,) = pod_spec("image", NodeHealthSettings())["containers"]
    given = {entry["name"]: entry["value"] for entry in container["env"]} | variables
    body, _ = script.change(found, script.Rules.of(given), NOW)
    return dict(body)


def test_a_label_of_autopilot_counts_as_a_failed_check(script: ModuleType) -> None:
    body = changed(script, node(labels=EVICT))
    assert body["spec"]["taints"] == [SKU, {"key": "aznhc", "value": "failed", "effect": "NoSchedule"}]
    # The patch replaces all taints, so the API server must reject it for a changed node.
    assert body["metadata"]["resourceVersion"] == "7"
    assert body["metadata"]["annotations"] == {
        "aznhc-verdict": f"VERDICT: FAIL label {AUTOPILOT_LABEL}=EVICT",
        "aznhc-results": f"VERDICT: FAIL label {AUTOPILOT_LABEL}=EVICT",
        "aznhc-failed": "2026-11-26T12:00:00Z",
    }


def test_a_listed_condition_counts_after_a_while(script: ModuleType) -> None:
    found = node()
    found["status"]["conditions"] = [
        {"type": "GpuLost", "status": "Unknown"},
        {"type": "Other", "status": "True"},
    ]
    assert changed(script, found, BAD_CONDITIONS="GpuLost") == {}
    lost = {"type": "GpuLost", "status": "True", "message": "7 of 8"}
    found["status"]["conditions"][:] = [{**lost, "lastTransitionTime": "2026-11-26T11:59:00Z"}]
    assert changed(script, found, BAD_CONDITIONS="GpuLost") == {}  # it may be temporary
    found["status"]["conditions"][:] = [{**lost, "lastTransitionTime": "2026-11-26T11:58:00Z"}]
    body = changed(script, found, BAD_CONDITIONS="GpuLost")
    assert body["metadata"]["annotations"]["aznhc-results"] == "VERDICT: FAIL condition GpuLost: 7 of 8"


def test_the_grace_period_begins_with_the_first_round(script: ModuleType) -> None:
    body = changed(script, node("NoSchedule"))
    assert body["metadata"]["annotations"] == {"aznhc-failed": "2026-11-26T12:00:00Z"}
    assert "spec" not in body
    assert changed(script, node("NoSchedule", failed=NOW - timedelta(minutes=59))) == {}


def test_sets_the_label_one_round_before_jobs_end(script: ModuleType) -> None:
    """AppWrapper moves a job without using a retry only while its pods run."""
    failed = NOW - timedelta(minutes=60)
    body = changed(script, node("NoSchedule", failed=failed))
    assert body["metadata"]["labels"] == {LABEL: VALUE}
    assert "spec" not in body
    body = changed(script, node("NoSchedule", failed=failed, labels={LABEL: VALUE}, **{"aznhc-labelled": "true"}))
    assert body["spec"]["taints"] == [SKU, {"key": "aznhc", "value": "failed", "effect": "NoExecute"}]
    assert body["metadata"] == {"resourceVersion": "7"}


@pytest.mark.parametrize("found", [node(labels=EVICT), node("NoSchedule")])
def test_no_execute_sets_the_label_now_and_ends_jobs_in_the_next_round(script: ModuleType, found: Object) -> None:
    body = changed(script, found, TAINT_EFFECT="NoExecute")
    assert body["metadata"]["labels"] == {LABEL: VALUE}
    assert not body.get("spec") or body["spec"]["taints"][-1]["effect"] == "NoSchedule"
    labelled = node("NoSchedule", failed=NOW, labels={LABEL: VALUE}, **{"aznhc-labelled": "true"})
    assert changed(script, labelled, TAINT_EFFECT="NoExecute")["spec"]["taints"][-1]["effect"] == "NoExecute"


def test_a_check_itself_never_ends_jobs() -> None:
    assert NodeHealthSettings(taint_effect="NoExecute").failure_effect == "NoSchedule"


def test_sets_the_label_for_a_manual_no_execute(script: ModuleType) -> None:
    body = changed(script, node("NoExecute"))
    assert body["metadata"]["labels"] == {LABEL: VALUE}
    assert "spec" not in body


def test_removes_its_label_and_annotations_with_the_taint(script: ModuleType) -> None:
    notes = {"aznhc-labelled": "true", "aznhc-results": "VERDICT: PASS"}
    body = changed(script, node(labels={LABEL: VALUE}, failed=NOW, **notes))
    assert body["metadata"]["labels"] == {LABEL: None}
    assert body["metadata"]["annotations"] == {"aznhc-failed": None, "aznhc-labelled": None}


def test_keeps_a_label_that_it_has_not_set(script: ModuleType) -> None:
    assert changed(script, node(labels={LABEL: VALUE})) == {}
