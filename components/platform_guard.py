"""Prevents `pulumi destroy` of a platform in use: an admission policy rejects the deletion of a sentinel ConfigMap.

This program does not run during a destroy, and a stack does not know its consumers, so the API server decides. Pulumi
deletes the ConfigMap first. One ValidatingAdmissionPolicy rejects this deletion while other stacks run on the platform:
each has a ServiceAccount in the platform's namespace. Another policy rejects it while claims of any stack or user have
files (PersistentVolumes).

The policies read ServiceAccounts and PersistentVolumes, because the API server always watches these. It would miss
changes of ConfigMaps after a policy's binding is deleted and re-created (tested with 1.35).
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
FILES = f"{NAME}-files"
FILES_OVERRIDE = f"kubectl delete validatingadmissionpolicybinding {FILES}"
"""The command that ends the protection of files if the policy rejects `pulumi up`."""
_GIVE_UP = "ai-on-aks/files-override"
"""The annotation that activates the policy for files. Its value is the command that destroys the stack with the files.

The command is not in `data`, because changed data would replace the ConfigMap, and the policies reject its deletion.
"""
CONSUMER_LABELS = {"ai-on-aks/consumer-stack": "true"}
_STACK = "ai-on-aks/stack"
_SELECTOR = ",".join(f"{key}={value}" for key, value in CONSUMER_LABELS.items())
_NO_PROTECTION = set_command(("storage", "protect"), False)
_OVERRIDE = f"kubectl delete validatingadmissionpolicybinding {NAME}"


def register(stack: str, opts: pulumi.ResourceOptions) -> kubernetes.core.v1.ServiceAccount:
    """Creates the ServiceAccount that registers this stack as a consumer. It has no rights, and no pod uses it."""
    metadata = {
        "name": f"consumer-{stack}",
        "namespace": WORKLOAD_NAMESPACE,
        "labels": CONSUMER_LABELS,
        "annotations": {_STACK: stack},
    }
    return kubernetes.core.v1.ServiceAccount(
        "consumer", metadata=metadata, automount_service_account_token=False, opts=opts
    )


class PlatformGuard(Component):
    """The policies and their ConfigMap. They depend on all other resources, so that a destroy begins with them."""

    def __init__(
        self,
        name: str,
        context: WorkloadContext,
        everything: Sequence[pulumi.Resource],
        operator_namespaces: Collection[str],
        *,
        protects_files: bool,
    ) -> None:
        """Also protects files if `protects_files`, except files of claims in `operator_namespaces`."""
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
                    self._policy(NAME, policy_spec(), {"matchLabels": CONSUMER_LABELS}, everything),
                    self._policy(FILES, files_policy_spec(operator_namespaces), {}, everything),
                ]
            ),
        )
        self.register_outputs({})

    def _policy(
        self, name: str, spec: dict[str, Any], selector: dict[str, Any], after: Sequence[pulumi.Resource]
    ) -> pulumi.Resource:
        """Creates the policy, and the binding that evaluates it for each object that `selector` matches.

        Namespaced objects are looked up in the ConfigMap's namespace.
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
    names = {"name": NAME, "stack": _STACK, "namespace": WORKLOAD_NAMESPACE, "selector": _SELECTOR}
    return filled(_HERE / "platform_in_use.yaml", **names, override=_OVERRIDE)


def files_policy_spec(operator_namespaces: Collection[str]) -> dict[str, Any]:
    file = _HERE / "platform_in_use_files.yaml"
    return filled(file, name=NAME, giveUp=_GIVE_UP, operatorNamespaces=sorted(operator_namespaces))
