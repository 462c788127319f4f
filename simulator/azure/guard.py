"""What people may do inside a cluster, by their roles in Azure: AKS's authorization webhook, for Azure RBAC.

AKS's is kubeguard/guard, whose words these are (authz/providers/azure/rbac/checkaccessreqhelper.go). A request becomes
a data action (`apps/deployments/write`), looked for in the roles of who asks and of their groups, on the namespace and
above it. Custom resources are data actions of their own there; of the built-in roles only those with `*` have them.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from config.facts import data
from config.rules.subscription import allows
from simulator.azure.arm_world import World
from simulator.azure.store import Body
from simulator.azure.types.role_assignment import allowed as roles

PATH = "/guard"
"""Behind the id of a cluster."""
NO_ACCESS = "User does not have access to the resource in Azure. Update role assignment to allow access."
_ALLOWED = "Access allowed by Azure RBAC"
_ACTIONS = dict.fromkeys(("get", "list", "watch"), "read") | dict.fromkeys(("create", "update", "patch"), "write")
_ACTIONS |= dict.fromkeys(("delete", "deletecollection"), "delete")
_ACTIONS |= {verb: f"{verb}/action" for verb in ("bind", "escalate", "impersonate", "use")}


def review(world: World, path: str, body: Body) -> Body:
    """The answer to a SubjectAccessReview; `path` is that of the request."""
    spec: Body = body["spec"]
    asked = spec.get("resourceAttributes") or {}
    namespace = f"/namespaces/{asked['namespace']}" if asked.get("namespace") else ""
    who = {spec.get("uid", ""), *spec.get("groups", ())}
    held = roles.held(world, who, path.removesuffix(PATH) + namespace)
    action, known = _action(spec), _permissions()
    allowed = any(allows(known[role], action) for role in held & known.keys())
    status = {"allowed": allowed, "denied": not allowed, "reason": _ALLOWED if allowed else NO_ACCESS}
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "status": status}


def _action(spec: Body) -> str:
    asked = spec.get("resourceAttributes")
    if asked is None:
        other: Body = spec["nonResourceAttributes"]
        return "/".join((other["path"].strip("/"), _ACTIONS.get(other["verb"], "")))
    group, resource = asked.get("group", ""), asked["resource"]
    verb = _ACTIONS.get(asked["verb"], asked["verb"])
    if (resource, asked.get("subresource")) == ("pods", "exec"):
        verb = "exec/action"
    return "/".join(part for part in (group, resource, verb) if part)


@functools.cache
def _permissions() -> dict[str, dict[str, Any]]:
    """Of each role, in the terms of Azure's actions."""
    found = data.parsed(Path(__file__).with_name("kubernetes_roles.yaml").read_text())
    return {
        name: {"actions": role["dataActions"], "notActions": role.get("notDataActions", [])}
        for name, role in found.items()
    }
