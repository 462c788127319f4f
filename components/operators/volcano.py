"""Volcano: schedules a job's pods all together or not at all."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component
from components.operators._release import Site, Values, release
from components.scheduling import SYSTEM_NODES, SYSTEM_TOLERATIONS
from config.models import Operator

NAME = "volcano"
MPI_ACCOUNT = "mpi-worker-view"


class Volcano(Component):
    """The release. Jobs depend on it: its admission webhook must answer before the first one."""

    def __init__(
        self,
        name: str,
        site: Site,
        settings: Operator,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        self.release = release(NAME, site, parent=self, values=values(), user_values=settings.values)
        self.register_outputs({})


class MpiAccount(Component):
    """The service account of MPI masters: it may see the pods of its namespace, and nothing else."""

    name: pulumi.Output[str]

    def __init__(
        self, name: str, *, namespace: kubernetes.core.v1.Namespace, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        space = namespace.metadata["name"]
        metadata = kubernetes.meta.v1.ObjectMetaArgs(name=MPI_ACCOUNT, namespace=space)
        account = kubernetes.core.v1.ServiceAccount(MPI_ACCOUNT, metadata=metadata, opts=self.child())
        role = kubernetes.rbac.v1.Role(
            f"{MPI_ACCOUNT}-role",
            metadata=metadata,
            rules=[
                kubernetes.rbac.v1.PolicyRuleArgs(api_groups=[""], resources=["pods"], verbs=["get", "list", "watch"])
            ],
            opts=self.child(),
        )
        binding = kubernetes.rbac.v1.RoleBinding(
            f"{MPI_ACCOUNT}-binding",
            metadata=metadata,
            role_ref=kubernetes.rbac.v1.RoleRefArgs(
                api_group="rbac.authorization.k8s.io", kind="Role", name=role.metadata["name"]
            ),
            subjects=[
                kubernetes.rbac.v1.SubjectArgs(kind="ServiceAccount", name=account.metadata["name"], namespace=space)
            ],
            opts=self.child(),
        )
        # Whoever uses the account may do so only once it has its rights.
        self.name = pulumi.Output.all(account.metadata["name"], binding.id).apply(lambda parts: str(parts[0]))
        self.register_outputs({"name": self.name})


def values() -> Values:
    """Values of the chart: everything of it runs on the system pool."""
    return {
        "basic": {"image_pull_policy": "IfNotPresent"},  # the image's tag never moves
        "custom": {"default_ns": SYSTEM_NODES, "default_tolerations": SYSTEM_TOLERATIONS},
    }
