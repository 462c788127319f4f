"""Webhooks of operators that were just installed answer late: objects that they keep out meanwhile are tried again.

Helm waits until an operator's pods are ready. Only after that does the control plane list them behind the webhook's
Service, and a manager that restarts answers nobody (pulumi/pulumi-kubernetes#1098, kyverno/kyverno#7294).
"""

from __future__ import annotations

import re

import pulumi

from components.role_delay import again

PAUSE_SECONDS = 5
ATTEMPTS = 24
"""Two minutes in all."""
_NOT_ANSWERED = re.compile(r"failed calling webhook.*(no endpoints available|connection refused)", re.DOTALL)
"""In the API server's words: kubernetes, staging/src/k8s.io/apiserver/pkg/util/webhook/error.go, ErrCallingWebhook."""
_OBJECTS, _RELEASE = "kubernetes:", "kubernetes:helm.sh/v3:Release"
"""Releases are not among them: what failed half-way keeps its name ("cannot reuse a name that is still in use")."""


async def again_until_answered(args: pulumi.ErrorHookArgs) -> bool:
    """Whether to try again, after a pause. `args.errors` has the errors so far, the newest first."""
    late = bool(_NOT_ANSWERED.search(args.errors[0]))
    return await again(args, late=late, pause_s=PAUSE_SECONDS, attempts=ATTEMPTS)


def retry_all() -> None:
    """Has all Kubernetes objects tried again. Call it before any resource is declared."""
    hook = pulumi.ErrorHook("webhook-not-answering-yet", again_until_answered)
    hooks = pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(on_error=[hook]))

    def prepare(declared: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if not declared.type_.startswith(_OBJECTS) or declared.type_ == _RELEASE:
            return None
        return pulumi.ResourceTransformationResult(declared.props, pulumi.ResourceOptions.merge(declared.opts, hooks))

    pulumi.runtime.register_stack_transformation(prepare)
