"""Rights of operators' pods: service accounts, and the policies that limit them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component
from components.operators import InstallContext

RBAC = "rbac.authorization.k8s.io"


def cluster_account(
    name: str,
    context: InstallContext,
    rules: Sequence[Mapping[str, Any]],
    *,
    parent: Component,
    after: Sequence[pulumi.Resource],
) -> tuple[kubernetes.core.v1.ServiceAccount, kubernetes.rbac.v1.ClusterRoleBinding]:
    """Creates the service account `name` in the operator's namespace, bound to a ClusterRole with these rules.

    Pods of the account depend on the returned resources.
    """
    space = context.namespace.metadata["name"]
    account = kubernetes.core.v1.ServiceAccount(
        f"{name}-account", metadata={"name": name, "namespace": space}, opts=parent.child()
    )
    role = kubernetes.rbac.v1.ClusterRole(
        f"{name}-role", metadata={"name": name}, rules=rules, opts=parent.child(depends_on=after)
    )
    binding = kubernetes.rbac.v1.ClusterRoleBinding(
        f"{name}-binding",
        metadata={"name": name},
        role_ref={"apiGroup": RBAC, "kind": "ClusterRole", "name": role.metadata["name"]},
        subjects=[{"kind": "ServiceAccount", "name": account.metadata["name"], "namespace": space}],
        opts=parent.child(),
    )
    return account, binding


def policy_binding(
    policy: str, namespaces: Mapping[str, str] | None = None, *, action: Literal["Deny", "Warn"] = "Deny"
) -> dict[str, Any]:
    where = {"matchResources": {"namespaceSelector": {"matchLabels": namespaces}}} if namespaces else {}
    return {"policyName": policy, "validationActions": [action], **where}


def admission_policy(
    name: str,
    spec: Mapping[str, Any],
    *,
    parent: Component,
    after: Sequence[pulumi.Resource],
    binding: Mapping[str, Any] | None = None,
) -> pulumi.Resource:
    kinds = kubernetes.admissionregistration.v1
    policy = kinds.ValidatingAdmissionPolicy(
        f"{name}-policy", metadata={"name": name}, spec=spec, opts=parent.child(depends_on=after)
    )
    bound: pulumi.Resource = kinds.ValidatingAdmissionPolicyBinding(
        f"{name}-binding",
        metadata={"name": name},
        spec=binding or policy_binding(name),
        opts=parent.child(depends_on=[policy]),
    )
    return bound
