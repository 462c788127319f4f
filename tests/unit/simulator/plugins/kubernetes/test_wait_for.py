"""The annotation waitFor: its paths, and what cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.plugins.kubernetes.awaiters import wait_for
from simulator.plugins.kubernetes.awaiters.jsonpath import JsonPath


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("{.status.state}", ["ready"]),
        ('{.status.conditions[?(@.type=="Ready")].status}', ["True"]),
        ('{.status.conditions[?(@.type!="Ready")].type}', ["Other"]),
        ("{.status.conditions[*].type}", ["Ready", "Other"]),
        ("{.status.conditions[-1].type}", ["Other"]),
        ("{.status['with.dot']}", [1]),
        (r"{.status.with\.dot}", [1]),
        ("{.missing.field}", []),
        ("{$.status.state}", ["ready"]),
    ],
)
def test_json_paths(path: str, found: list[Any]) -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]
    assert JsonPath(path).select({"status": {"state": "ready", "with.dot": 1, "conditions": conditions}}) == found


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("ready", 'expected a "jsonpath=" or "condition=" prefix'),
        ("[]", "at least one condition"),
        ("jsonpath=.status", "should be wrapped in brackets"),
        ("jsonpath='{.status}'", "should omit shell quotes"),
        ("jsonpath={.a}=b=c", "format should be"),
        ("jsonpath={.a}=", "requires a value"),
        ("jsonpath={.a[}", "cannot read"),
    ],
)
def test_wait_for_annotations_that_cannot_be_read(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint.replace("[", r"\[")):
        wait_for.parse(text)
