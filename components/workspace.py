"""The namespace of a stack's workloads, their service accounts, and the blob containers mounted there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component
from components.azure.identity import Federation, WorkloadIdentity
from components.context import BlobVolume
from components.namespace import namespace
from components.storage.container_access import ContainerAccess
from components.storage.volumes import ContainerVolume
from config.data.blobfuse import ACCOUNT
from config.data.scheduling import HEALTH_ACCOUNT, HEALTH_ROLE

MPI_ACCOUNT = "mpi-worker-view"


class Workspace(Component):
    """The namespace. Its pods may lock memory (IPC_LOCK) and mount scratch, which only the privileged level allows."""

    namespace: pulumi.Output[str]
    account: pulumi.Output[str]
    volumes: Mapping[str, BlobVolume]

    def __init__(
        self,
        name: str,
        space_name: str,
        containers: Mapping[str, ContainerAccess],
        hooks: pulumi.ResourceHookBinding | None,
        federation: Federation | None = None,
        *,
        checks: Sequence[pulumi.Resource] | None,
        keeps_files: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Creates the namespace, with only those SAS and roles that its pods use to mount `containers`.

        `federation` is set if identities open any of the platform's containers. `checks` are the resources that create
        the role for reports of nodes' health, or None without that role. If `keeps_files`, the namespace and its claims
        stay when the stack is destroyed.
        """
        super().__init__(name, opts)
        space = namespace(space_name, "privileged", parent=self, hooks=hooks, keeps_files=keeps_files)
        account = MpiAccount("mpi-account", namespace=space, opts=self.child())
        self.namespace = space.metadata["name"]
        self.account = account.name
        theirs = [access for access in containers.values() if access.sas is None]
        identity = (
            WorkloadIdentity("identity", federation, theirs, namespace=space_name, needs=space, opts=self.child())
            if federation and theirs
            else None
        )
        if checks is not None:
            CheckAccount("check-account", space_name, space, checks, by_identity=identity is not None, parent=self)
        self.volumes = {
            container: ContainerVolume(
                container,
                access,
                namespace=space_name,
                space=space,
                space_goes=not keeps_files,
                hooks=hooks,
                identity=None if access.sas else identity,
                opts=self.child(),
            ).volume
            for container, access in containers.items()
        }
        self.register_outputs({"namespace": self.namespace})


class CheckAccount(Component):
    """The service account of pods that check their node. A policy limits its rights (operators/node_health)."""

    def __init__(
        self,
        name: str,
        space_name: str,
        space: kubernetes.core.v1.Namespace,
        role: Sequence[pulumi.Resource],
        *,
        by_identity: bool,
        parent: Component,
    ) -> None:
        """Binds the role after the resources `role`. Before that, only a deployer with all rights could bind it."""
        super().__init__(name, parent.child())
        inside = space.metadata["name"]
        kubernetes.core.v1.ServiceAccount(
            HEALTH_ACCOUNT, metadata={"name": HEALTH_ACCOUNT, "namespace": inside}, opts=self.child()
        )
        names = [HEALTH_ACCOUNT, *([ACCOUNT] if by_identity else [])]
        kubernetes.rbac.v1.ClusterRoleBinding(
            "aksnhc-rolebinding",
            metadata={"name": f"{space_name}-aksnhc-rolebinding"},
            role_ref={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": HEALTH_ROLE},
            subjects=[{"kind": "ServiceAccount", "name": each, "namespace": inside} for each in names],
            opts=self.child(depends_on=role),
        )
        self.register_outputs({})


class MpiAccount(Component):
    """The service account of MPI masters. It may only read the pods of its namespace."""

    name: pulumi.Output[str]

    def __init__(
        self, name: str, *, namespace: kubernetes.core.v1.Namespace, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        space = namespace.metadata["name"]
        metadata = {"name": MPI_ACCOUNT, "namespace": space}
        account = kubernetes.core.v1.ServiceAccount(MPI_ACCOUNT, metadata=metadata, opts=self.child())
        role = kubernetes.rbac.v1.Role(
            f"{MPI_ACCOUNT}-role",
            metadata=metadata,
            rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}],
            opts=self.child(),
        )
        binding = kubernetes.rbac.v1.RoleBinding(
            f"{MPI_ACCOUNT}-binding",
            metadata=metadata,
            role_ref={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role.metadata["name"]},
            subjects=[{"kind": "ServiceAccount", "name": account.metadata["name"], "namespace": space}],
            opts=self.child(),
        )
        # Users of the account must wait until it has its rights.
        self.name = pulumi.Output.all(account.metadata["name"], binding.id).apply(lambda parts: str(parts[0]))
        self.register_outputs({"name": self.name})
