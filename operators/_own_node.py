"""Pods of every node that may change nodes: each its own alone.

RBAC knows names of nodes, and not which one a pod is on; a token that a kubelet has asked for its pod does (KEP-4193,
stable in Kubernetes 1.32). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_CLAIM = "authentication.kubernetes.io/node-name"


def own_node_policy(
    resource: str, who: str, variables: Mapping[str, str] | None = None, more: Iterable[Mapping[str, str]] = ()
) -> dict[str, Any]:
    """The spec of a ValidatingAdmissionPolicy on `resource`, nodes or nodes/status, for users of whom `who` is true.

    `more` are further validations; `variables` are theirs.
    """
    named = {"own": f"request.userInfo.?extra[?'{_CLAIM}'].orValue([''])[0]", **(variables or {})}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": [resource]}
    where = "(variables.own == '' ? 'on none that its token names' : 'on ' + variables.own)"
    message = f"'a check may change the node that it runs on, and no other: its pod is ' + {where}"
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "is-one-of-these", "expression": who}],
        "variables": [{"name": name, "expression": expression} for name, expression in named.items()],
        "validations": [
            {
                "expression": "variables.own == object.metadata.name",
                "messageExpression": message,
                "reason": "Forbidden",
            },
            *({**each, "reason": "Forbidden"} for each in more),
        ],
    }
