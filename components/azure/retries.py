"""Error hooks that retry requests until a new role or webhook takes effect.

- Roles: Azure RBAC needs up to five minutes to apply a new role in a cluster (Microsoft's Entra ID guide for AKS), and
  does not report when it applies. Until then the API server answers 403 Forbidden. So the program retries the first
  objects in a cluster: namespaces and volumes. All other objects depend on a namespace. It also retries the creation of
  a cluster until the cluster's identity may join the network, which AKS checks first.
- Webhooks: Helm waits until an operator's pods are ready, but the control plane adds them to the webhook's Service
  later. A restarting manager does not answer either (pulumi/pulumi-kubernetes#1098, kyverno/kyverno#7294).
"""

from __future__ import annotations

import asyncio
import re

import pulumi

PAUSE_SECONDS, ATTEMPTS = 15, 28
"""The retries for roles: seven minutes."""
WEBHOOK_PAUSE_SECONDS, WEBHOOK_ATTEMPTS = 5, 24
"""The retries for webhooks: two minutes."""
_NOT_JOINED = re.compile(
    r"MissingPermission|Check access result not allowed|Microsoft\.Network/\S+/join/action", re.IGNORECASE
)
"""Errors of AKS and ARM if a control plane's identity lacks a role on its network or zone (Azure/AKS#3470,
Azure/Azure-Landing-Zones#2892, MicrosoftDocs/azure-aks-docs#110).
"""
_NOT_ANSWERED = re.compile(r"failed calling webhook.*(no endpoints available|connection refused)", re.DOTALL)
"""The API server's error for a failed webhook (k8s.io/apiserver, pkg/util/webhook/error.go, ErrCallingWebhook)."""
_OBJECTS, _RELEASE = "kubernetes:", "kubernetes:helm.sh/v3:Release"
"""Helm releases are not retried: a failed release keeps its name ("cannot reuse a name that is still in use")."""


async def retry_forbidden(args: pulumi.ErrorHookArgs) -> bool:
    """Pauses and returns True to retry a 403 response. `args.errors` has the errors so far, newest first."""
    return await _retry(args, late="forbidden" in args.errors[0].lower())


async def retry_joining(args: pulumi.ErrorHookArgs) -> bool:
    return await _retry(args, late=bool(_NOT_JOINED.search(args.errors[0])))


async def retry_webhook_calls(args: pulumi.ErrorHookArgs) -> bool:
    late = bool(_NOT_ANSWERED.search(args.errors[0]))
    return await _retry(args, late=late, pause_s=WEBHOOK_PAUSE_SECONDS, attempts=WEBHOOK_ATTEMPTS)


async def _retry(
    args: pulumi.ErrorHookArgs, *, late: bool, pause_s: float = PAUSE_SECONDS, attempts: int = ATTEMPTS
) -> bool:
    if not late or len(args.errors) > attempts:
        return False
    await asyncio.sleep(pause_s)
    return True


def retry_policy() -> pulumi.ResourceHookBinding:
    """Returns the hook for the first resources in a cluster. Call it once."""
    return pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook("role-not-acting-yet", retry_forbidden)])


def join_retry_policy() -> pulumi.ResourceHookBinding:
    return pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook("network-role-not-acting-yet", retry_joining)])


def retry_webhooks() -> None:
    """Adds the hook for webhooks to all Kubernetes objects that are declared later, except Helm releases."""
    hook = pulumi.ErrorHook("webhook-not-answering-yet", retry_webhook_calls)
    hooks = pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(on_error=[hook]))

    def prepare(declared: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if not declared.type_.startswith(_OBJECTS) or declared.type_ == _RELEASE:
            return None
        return pulumi.ResourceTransformationResult(declared.props, pulumi.ResourceOptions.merge(declared.opts, hooks))

    pulumi.runtime.register_stack_transformation(prepare)
