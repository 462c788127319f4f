"""What people may do inside a cluster, by their roles in Azure: AKS's authorization webhook, for Azure RBAC.

AKS's is kubeguard/guard, whose words these are (authz/providers/azure/rbac/checkaccessreqhelper.go). A request becomes
a data action (`apps/deployments/write`), looked for in the roles of who asks and of their groups, on the namespace and
above it. Custom resources are data actions of their own there; of the built-in roles only those with `*` have them.
"""

from __future__ import annotations

from simulator.azure.arm_world import World
from simulator.azure.store import Body
from simulator.azure.types.managed_cluster import rules as clusters
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
    action = f"{clusters.TYPE}/{_action(spec)}"
    allowed = roles.allows(world, who, action, path.removesuffix(PATH) + namespace, is_data=True)
    status = {"allowed": allowed, "denied": not allowed, "reason": _ALLOWED if allowed else NO_ACCESS}
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "status": status}


def _action(spec: Body) -> str:
    """Returns the data action of a request. A verb that guard does not know adds nothing to it (getActionName)."""
    asked = spec.get("resourceAttributes") or spec["nonResourceAttributes"]
    verb = _ACTIONS.get(asked["verb"], "")
    if (asked.get("resource"), asked.get("subresource")) == ("pods", "exec"):
        verb = "exec/action"
    parts = (asked.get("group"), asked.get("resource") or asked.get("path", "").strip("/"), verb)
    return "/".join(part for part in parts if part)
