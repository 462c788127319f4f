"""Error hooks that retry what is refused only for a while, because something new does not act yet.

- Roles: Azure RBAC needs up to five minutes to let a new one into a cluster (Microsoft's Entra ID guide for AKS).
  Until then the API server answers 403 Forbidden. Nothing in Azure reports when it is over, so the first objects in a
  cluster, its namespaces and volumes, are retried; everything else comes after a namespace. So is a cluster whose
  identity may not join its network yet: AKS checks that before it makes anything.
- Webhooks: Helm waits until an operator's pods are ready. Only after that does the control plane list them behind the
  webhook's Service, and a manager that restarts does not answer (pulumi/pulumi-kubernetes#1098, kyverno/kyverno#7294).
"""

from __future__ import annotations

import asyncio
import re

import pulumi

PAUSE_SECONDS, ATTEMPTS = 15, 28
"""For roles: seven minutes in all."""
WEBHOOK_PAUSE_SECONDS, WEBHOOK_ATTEMPTS = 5, 24
"""Two minutes in all."""
_NOT_JOINED = re.compile(
    r"MissingPermission|Check access result not allowed|Microsoft\.Network/\S+/join/action", re.IGNORECASE
)
"""In the words of AKS and ARM where a control plane's identity lacks a role on its network or its zone
(Azure/AKS#3470, Azure/Azure-Landing-Zones#2892, MicrosoftDocs/azure-aks-docs#110).
"""
_NOT_ANSWERED = re.compile(r"failed calling webhook.*(no endpoints available|connection refused)", re.DOTALL)
"""In the API server's words: kubernetes, staging/src/k8s.io/apiserver/pkg/util/webhook/error.go, ErrCallingWebhook."""
_OBJECTS, _RELEASE = "kubernetes:", "kubernetes:helm.sh/v3:Release"
"""Releases are not among them: what failed half-way keeps its name ("cannot reuse a name that is still in use")."""


async def again_while_forbidden(args: pulumi.ErrorHookArgs) -> bool:
    """Whether to try again, after a pause. `args.errors` has the errors so far, the newest first."""
    return await _again(args, late="forbidden" in args.errors[0].lower())


async def again_until_joined(args: pulumi.ErrorHookArgs) -> bool:
    """The same of a cluster whose identity may not join its network."""
    return await _again(args, late=bool(_NOT_JOINED.search(args.errors[0])))


async def again_until_answered(args: pulumi.ErrorHookArgs) -> bool:
    """The same of an object whose webhook does not answer yet."""
    late = bool(_NOT_ANSWERED.search(args.errors[0]))
    return await _again(args, late=late, pause_s=WEBHOOK_PAUSE_SECONDS, attempts=WEBHOOK_ATTEMPTS)


async def _again(
    args: pulumi.ErrorHookArgs, *, late: bool, pause_s: float = PAUSE_SECONDS, attempts: int = ATTEMPTS
) -> bool:
    """Pauses and returns True, if what was asked is only `late` and there are attempts left."""
    if not late or len(args.errors) > attempts:
        return False
    await asyncio.sleep(pause_s)
    return True


def patience() -> pulumi.ResourceHookBinding:
    """For the resources that come first in a cluster; make it once."""
    return pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook("role-not-acting-yet", again_while_forbidden)])


def patience_to_join() -> pulumi.ResourceHookBinding:
    """For a cluster that joins a network by a new role."""
    return pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook("network-role-not-acting-yet", again_until_joined)])


def retry_webhooks() -> None:
    """Has all Kubernetes objects tried again. Call it before any resource is declared."""
    hook = pulumi.ErrorHook("webhook-not-answering-yet", again_until_answered)
    hooks = pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(on_error=[hook]))

    def prepare(declared: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if not declared.type_.startswith(_OBJECTS) or declared.type_ == _RELEASE:
            return None
        return pulumi.ResourceTransformationResult(declared.props, pulumi.ResourceOptions.merge(declared.opts, hooks))

    pulumi.runtime.register_stack_transformation(prepare)
