"""Prevents `pulumi destroy` of a platform in use: an admission policy rejects the deletion of a sentinel ConfigMap.

No code of this program runs while a stack is destroyed, nor does a stack know who uses it. So the API server decides.
Pulumi deletes the ConfigMap before all else. One ValidatingAdmissionPolicy keeps it while other stacks run on the
platform: each of these leaves a ServiceAccount in the platform's namespace. Another one keeps it while claims keep
files. It looks at PersistentVolumes, which exist for claims of every stack and of users.

The API server watches both kinds anyway (PersistentVolumes for its node authorizer). It would see no change of
ConfigMaps any more once the policy's binding has been deleted and made again (tried with 1.35: a consumer stack that
had gone was still counted).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component
from components.context import WorkloadContext
from config.problems.fixes import set_command
from config.schema.names import WORKLOAD_NAMESPACE
from k8s.templates import filled

_HERE = Path(__file__).parent
NAME = "platform-in-use"
"""Of the policy, of its binding and of the ConfigMap."""
FILES = f"{NAME}-files"
"""The name of the policy that keeps claims with files, and of its binding."""
FILES_OVERRIDE = f"kubectl delete validatingadmissionpolicybinding {FILES}"
"""The command that gives the files up where `pulumi up` is refused."""
_GIVE_UP = "ai-on-aks/files-override"
"""The annotation of the ConfigMap that makes that policy act. Its value is the command that gives the files up.

It is not in `data`: the provider replaces a ConfigMap whose data change, which the policies refuse.
"""
GUEST_LABELS = {"ai-on-aks/guest": "true"}
"""The label of the ServiceAccount of a stack that runs on the platform of another."""
_STACK = "ai-on-aks/stack"
_SELECTOR = ",".join(f"{key}={value}" for key, value in GUEST_LABELS.items())
_NO_PROTECTION = set_command(("storage", "protect"), False)
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
    """The policies and what they keep. They follow all else of the stack, so that they go first or nothing does."""

    def __init__(
        self,
        name: str,
        context: WorkloadContext,
        everything: Sequence[pulumi.Resource],
        operator_namespaces: Collection[str],
        *,
        protects_files: bool,
    ) -> None:
        """Keeps files too if `protects_files`; claims in `operator_namespaces` do not count."""
        super().__init__(name, pulumi.ResourceOptions(providers={"kubernetes": context.provider}))
        stack = pulumi.get_stack()
        give_up = f"{_NO_PROTECTION.text(stack)} && pulumi up -s {stack} && pulumi destroy -s {stack}"
        metadata = {"name": NAME, "namespace": context.namespace}
        kubernetes.core.v1.ConfigMap(
            NAME,
            metadata={**metadata, "annotations": {_GIVE_UP: give_up}} if protects_files else metadata,
            data={"keeps": "the platform, while other stacks run on it", "override": _OVERRIDE},
            opts=self.child(
                depends_on=[
                    self._policy(NAME, policy_spec(), {"matchLabels": GUEST_LABELS}, everything),
                    self._policy(FILES, files_policy_spec(operator_namespaces), {}, everything),
                ]
            ),
        )
        self.register_outputs({})

    def _policy(
        self, name: str, spec: dict[str, Any], selector: dict[str, Any], after: Sequence[pulumi.Resource]
    ) -> pulumi.Resource:
        """Creates the policy, and the binding that evaluates it for each object that `selector` matches.

        Without such an object the deletion is allowed. Namespaced objects are looked for beside the ConfigMap.
        """
        policy = kubernetes.admissionregistration.v1.ValidatingAdmissionPolicy(
            f"{name}-policy", metadata={"name": name}, spec=spec, opts=self.child(depends_on=after)
        )
        bound = {
            "policyName": name,
            "paramRef": {"selector": selector, "parameterNotFoundAction": "Allow"},
            "validationActions": ["Deny"],
        }
        binding: pulumi.Resource = kubernetes.admissionregistration.v1.ValidatingAdmissionPolicyBinding(
            f"{name}-binding", metadata={"name": name}, spec=bound, opts=self.child(depends_on=[policy])
        )
        return binding


def policy_spec() -> dict[str, Any]:
    """Returns the policy that refuses to delete the ConfigMap while other stacks run on the platform."""
    names = {"name": NAME, "stack": _STACK, "namespace": WORKLOAD_NAMESPACE, "selector": _SELECTOR}
    return filled(_HERE / "platform_in_use.yaml", **names, override=_OVERRIDE)


def files_policy_spec(operator_namespaces: Collection[str]) -> dict[str, Any]:
    """Returns the policy that refuses to delete the annotated ConfigMap while a claim keeps files."""
    file = _HERE / "platform_in_use_files.yaml"
    return filled(file, name=NAME, giveUp=_GIVE_UP, operatorNamespaces=sorted(operator_namespaces))
