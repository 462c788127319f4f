"""Prevents `pulumi destroy` of a platform in use: an admission policy rejects the deletion of a sentinel ConfigMap.

No code of this program runs while a stack is destroyed, nor does a stack know who uses it. So the API server decides.
Pulumi deletes the ConfigMap before all else. One ValidatingAdmissionPolicy keeps it while other stacks run on the
platform: each of these leaves a ServiceAccount in the platform's namespace. Another one keeps it while claims keep
files. It looks at PersistentVolumes, which exist for claims of every stack, of earlier versions and of users.

The API server watches both kinds anyway (PersistentVolumes for its node authorizer). It would see no change of
ConfigMaps any more once the policy's binding has been deleted and made again (tried with 1.35: a consumer stack that
had gone was still counted).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component
from components.context import WorkloadContext
from config.problems.fixes import set_command
from config.schema.names import WORKLOAD_NAMESPACE

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
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
"""The annotation of a volume that was provisioned for a claim (kubernetes-csi/external-provisioner)."""
GUEST_LABELS = {"ai-on-aks/guest": "true"}
"""Of the ServiceAccount of a stack that runs on the platform of another.

A stack that an earlier version made has none, and does not count, until its next `up`.
"""
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
    """Refuses to delete the ConfigMap. It is asked once for each guest that the binding finds (Kubernetes 1.30).

    The API server passes on one of these refusals alone (dispatcher.go), so it names the command that lists all.
    """
    stack = f"params.metadata.annotations['{_STACK}']"
    message = (
        f"'stack ' + {stack} + ' runs on this platform. Destroy it first: pulumi destroy -s ' + {stack} + "
        f"'. All such stacks: kubectl get serviceaccounts -n {WORKLOAD_NAMESPACE} --selector {_SELECTOR}. "
        f"To destroy the platform all the same: {_OVERRIDE}'"
    )
    return _spec("ServiceAccount", "false", message)


def files_policy_spec(operator_namespaces: Collection[str]) -> dict[str, Any]:
    """Returns the policy that refuses to delete the annotated ConfigMap while a claim keeps files.

    It counts each volume that a CSI driver has provisioned for a claim, because such a volume is deleted with the
    cluster. It does not count folders of an NFS server, nor blob containers, nor claims of operators (metrics).
    """
    own = ", ".join(f"'{name}'" for name in sorted(operator_namespaces))
    namespace, claim = "params.spec.claimRef.namespace", "params.spec.claimRef.name"
    counted = (
        f"has(oldObject.metadata.annotations) && '{_GIVE_UP}' in oldObject.metadata.annotations && "
        "has(params.spec.csi) && has(params.spec.claimRef) && has(params.metadata.annotations) && "
        f"'{_PROVISIONED_BY}' in params.metadata.annotations && !({namespace} in [{own}])"
    )
    message = (
        f"'claim ' + {namespace} + '/' + {claim} + ' keeps files, which are deleted with the cluster. All such claims: "
        f"kubectl get persistentvolumes. To delete this one: kubectl delete persistentvolumeclaim -n ' + {namespace} + "
        f"' ' + {claim} + '. To destroy the platform with all of them: ' + "
        f"oldObject.metadata.annotations['{_GIVE_UP}']"
    )
    return _spec("PersistentVolume", f"!({counted})", message)


def _spec(kind: str, expression: str, message: str) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}
    return {
        "failurePolicy": "Fail",
        "paramKind": {"apiVersion": "v1", "kind": kind},
        "matchConstraints": {"resourceRules": [{**rule, "resourceNames": [NAME]}]},
        "validations": [{"expression": expression, "messageExpression": message, "reason": "Forbidden"}],
    }
