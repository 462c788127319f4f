"""What a pod that checks its node may change: the taint and the annotations of the check, of no other node."""

from __future__ import annotations

from typing import Any

from config.facts.blobfuse import ACCOUNT
from config.facts.scheduling import HEALTH_ACCOUNT, HEALTH_TAINT
from operators._rights import own_node_policy

NAME = "health-checks-own-node"
ACCOUNTS = (HEALTH_ACCOUNT, ACCOUNT)
"""Service accounts, in whatever namespace, under which pods check their node: a pod has one, and who mounts blobs by
identity has that one.
"""
_MESSAGE = f"of its node, a check may change the taint {HEALTH_TAINT} and annotations that begin so, and nothing else"


def policy() -> dict[str, Any]:
    """The spec of the ValidatingAdmissionPolicy."""
    theirs = " || ".join(f"request.userInfo.username.endsWith(':{name}')" for name in ACCOUNTS)
    return own_node_policy(
        "nodes",
        f"request.userInfo.username.startsWith('system:serviceaccount:') && ({theirs})",
        {
            "now": "object.metadata.?annotations.orValue({})",
            "before": "oldObject.metadata.?annotations.orValue({})",
        },
        [
            {"expression": expression, "message": _MESSAGE}
            for expression in (*_same_annotations(), *_same_spec(), *_same_metadata())
        ],
    )


def _same_annotations() -> tuple[str, ...]:
    def kept(some: str, others: str) -> str:
        there = f"(key in {others} && {others}[key] == {some}[key])"
        return f"{some}.all(key, key.startsWith('{HEALTH_TAINT}-') || {there})"

    return kept("variables.now", "variables.before"), kept("variables.before", "variables.now")


def _same_spec() -> tuple[str, ...]:
    """The rest of a node's spec cannot change once it is set (validation.go, ValidateNodeUpdate)."""

    def taints(of: str) -> str:
        return f"{of}.spec.?taints.orValue([]).filter(taint, taint.key != '{HEALTH_TAINT}')"

    cordoned = "object.spec.?unschedulable.orValue(false) == oldObject.spec.?unschedulable.orValue(false)"
    provider = "object.spec.?providerID.orValue('') == oldObject.spec.?providerID.orValue('')"
    now, before = taints("object"), taints("oldObject")  # in whatever order
    same = f"{now}.all(taint, taint in {before}) && {before}.all(taint, taint in {now})"
    return same, cordoned, provider


def _same_metadata() -> tuple[str, ...]:
    kept = {"labels": "{}", "finalizers": "[]", "ownerReferences": "[]"}
    return tuple(
        f"object.metadata.?{field}.orValue({empty}) == oldObject.metadata.?{field}.orValue({empty})"
        for field, empty in kept.items()
    )
