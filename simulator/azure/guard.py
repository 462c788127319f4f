"""AKS's authorization webhook for Azure RBAC: authorizes a cluster's users by their Azure roles.

AKS uses kubeguard/guard, the source of the messages (authz/providers/azure/rbac/checkaccessreqhelper.go). A role of the
user or of a group of the user, on the namespace or above, must allow the data action (`apps/deployments/write`). Only
built-in roles with `*` allow the data actions of custom resources.
"""

from __future__ import annotations

from simulator.azure.arm_world import World
from simulator.azure.store import Body
from simulator.azure.types.managed_cluster import rules as clusters
from simulator.azure.types.role_assignment import allowed as roles

PATH = "/guard"
NO_ACCESS = "User does not have access to the resource in Azure. Update role assignment to allow access."
_ALLOWED = "Access allowed by Azure RBAC"
_ACTIONS = dict.fromkeys(("get", "list", "watch"), "read") | dict.fromkeys(("create", "update", "patch"), "write")
_ACTIONS |= dict.fromkeys(("delete", "deletecollection"), "delete")
_ACTIONS |= {verb: f"{verb}/action" for verb in ("bind", "escalate", "impersonate", "use")}


def review(world: World, path: str, body: Body) -> Body:
    spec: Body = body["spec"]
    attributes = spec.get("resourceAttributes") or {}
    namespace = f"/namespaces/{attributes['namespace']}" if attributes.get("namespace") else ""
    who = {spec.get("uid", ""), *spec.get("groups", ())}
    action = f"{clusters.TYPE}/{_action(spec)}"
    allowed = roles.allows(world, who, action, path.removesuffix(PATH) + namespace, is_data=True)
    status = {"allowed": allowed, "denied": not allowed, "reason": _ALLOWED if allowed else NO_ACCESS}
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "status": status}


def _action(spec: Body) -> str:
    """Returns the data action. Leaves out an unknown verb, as guard does (getActionName)."""
    attributes = spec.get("resourceAttributes") or spec["nonResourceAttributes"]
    verb = _ACTIONS.get(attributes["verb"], "")
    if (attributes.get("resource"), attributes.get("subresource")) == ("pods", "exec"):
        verb = "exec/action"
    parts = (attributes.get("group"), attributes.get("resource") or attributes.get("path", "").strip("/"), verb)
    return "/".join(part for part in parts if part)
