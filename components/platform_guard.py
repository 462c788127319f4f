"""A platform that other stacks run on does not go without a word: the API server refuses that of its first object.

No code of this program runs while a stack is destroyed, nor does a stack know who uses it. So each stack that runs on
it leaves a ServiceAccount in the platform's namespace, and a ValidatingAdmissionPolicy keeps one ConfigMap there for as
long as there are such: whoever destroys the platform meets that before all else.

They are of a kind that the API server watches anyway. Of ConfigMaps it would see no change any more once the policy's
binding has been deleted and made again (tried with 1.35: a guest that had gone was still counted).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component
from components.context import WorkloadContext
from config.schema.names import WORKLOAD_NAMESPACE

NAME = "platform-in-use"
"""Of the policy, of its binding and of the ConfigMap."""
GUEST_LABELS = {"ai-on-aks/guest": "true"}
"""Of the ServiceAccount of a stack that runs on the platform of another.

A stack that an earlier version made has none, and does not count, until its next `up`.
"""
_STACK = "ai-on-aks/stack"
_SELECTOR = ",".join(f"{key}={value}" for key, value in GUEST_LABELS.items())
_OVERRIDE = f"kubectl delete validatingadmissionpolicybinding {NAME}"


def guest(stack: str, opts: pulumi.ResourceOptions) -> kubernetes.core.v1.ServiceAccount:
    """What tells the platform that a stack runs on it. No pod runs under it, and it may do nothing."""
    metadata = {
        "name": f"guest-{stack}",
        "namespace": WORKLOAD_NAMESPACE,
        "labels": GUEST_LABELS,
        "annotations": {_STACK: stack},
    }
    return kubernetes.core.v1.ServiceAccount(
        "guest", metadata=metadata, automount_service_account_token=False, opts=opts
    )


class PlatformGuard(Component):
    """The policy and what it keeps. It follows everything else of its stack, so that it goes first or nothing does."""

    def __init__(self, name: str, context: WorkloadContext, everything: Sequence[pulumi.Resource]) -> None:
        super().__init__(name, pulumi.ResourceOptions(providers={"kubernetes": context.provider}))
        policy = kubernetes.admissionregistration.v1.ValidatingAdmissionPolicy(
            f"{NAME}-policy", metadata={"name": NAME}, spec=policy_spec(), opts=self.child(depends_on=everything)
        )
        binding = kubernetes.admissionregistration.v1.ValidatingAdmissionPolicyBinding(
            f"{NAME}-binding", metadata={"name": NAME}, spec=binding_spec(), opts=self.child(depends_on=[policy])
        )
        kubernetes.core.v1.ConfigMap(
            NAME,
            metadata={"name": NAME, "namespace": context.namespace},
            data={"keeps": "the platform, while other stacks run on it", "override": _OVERRIDE},
            opts=self.child(depends_on=[binding]),
        )
        self.register_outputs({})


def policy_spec() -> dict[str, Any]:
    """Refuses to delete the ConfigMap. It is asked once for each guest that the binding finds (Kubernetes 1.30).

    The API server passes on one of these refusals alone (dispatcher.go), so it names the command that lists all.
    """
    stack = f"params.metadata.annotations['{_STACK}']"
    message = (
        f"'stack ' + {stack} + ' runs on this platform. Destroy it first: pulumi destroy -s ' + {stack} + "
        f"'. All such stacks: kubectl get serviceaccounts -n {WORKLOAD_NAMESPACE} --selector {_SELECTOR}. "
        f"To destroy the platform all the same: {_OVERRIDE}'"
    )
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}
    return {
        "failurePolicy": "Fail",
        "paramKind": {"apiVersion": "v1", "kind": "ServiceAccount"},
        "matchConstraints": {"resourceRules": [{**rule, "resourceNames": [NAME]}]},
        "validations": [{"expression": "false", "messageExpression": message, "reason": "Forbidden"}],
    }


def binding_spec() -> dict[str, Any]:
    """Without a guest there is nothing to refuse. Guests are looked for where the ConfigMap is that is kept."""
    return {
        "policyName": NAME,
        "paramRef": {"selector": {"matchLabels": GUEST_LABELS}, "parameterNotFoundAction": "Allow"},
        "validationActions": ["Deny"],
    }
