"""The platform: cluster, GPU pools, a way in, and operators, in the order in which they need each other."""

from __future__ import annotations

import pulumi

from components import images
from components._base import Component
from components.cluster import Cluster
from components.context import WorkloadContext
from components.kubernetes_access import KubernetesAccess
from components.namespace import namespace
from components.node_pools import NodePools
from components.operators.operators import Operators
from components.operators.volcano import MpiAccount
from components.resource_group import ResourceGroup
from config.models import Settings

WORKLOAD_NAMESPACE = "ai"


class Platform(Component):
    """Everything that workloads stand on."""

    resource_group: ResourceGroup
    cluster: Cluster
    pools: NodePools
    access: KubernetesAccess
    operators: Operators
    workspace: Workspace

    def __init__(self, name: str, settings: Settings, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        self.settings = settings
        self.resource_group = ResourceGroup("group", settings, opts=self.child())
        self.cluster = Cluster("cluster", settings, self.resource_group.name, opts=self.child())
        self.pools = NodePools("pools", self.cluster, settings.gpu_pools(), opts=self.child())
        self.access = KubernetesAccess("access", self.cluster, settings.cluster, opts=self.child())
        in_cluster = {"kubernetes": self.access.provider}
        self.operators = Operators(
            "operators", settings, self.pools, self.access.first_contact, opts=self.child(providers=in_cluster)
        )
        self.workspace = Workspace("workspace", self.access.first_contact, opts=self.child(providers=in_cluster))
        self.register_outputs({"cluster": self.cluster.name})

    def context(self) -> WorkloadContext:
        """What workloads are given."""
        ready = self.operators.ready() if self.settings.workloads else []
        return WorkloadContext(
            provider=self.access.provider,
            namespace=self.workspace.namespace,
            service_account=self.workspace.account,
            pools=self.pools.pools,
            rdma_resource=self.settings.operators.network_operator.resource_name,
            image=lambda name: images.reference(name, self.settings.images.registry),
            volumes={},
            ready=ready,
        )


class Workspace(Component):
    """The namespace of workloads. Its pods may pin memory (IPC_LOCK), which only the privileged level allows."""

    namespace: pulumi.Output[str]
    account: pulumi.Output[str]

    def __init__(
        self, name: str, hooks: pulumi.ResourceHookBinding | None, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        space = namespace(WORKLOAD_NAMESPACE, "privileged", parent=self, hooks=hooks)
        account = MpiAccount("mpi-account", namespace=space, opts=self.child())
        self.namespace = space.metadata["name"]
        self.account = account.name
        self.register_outputs({"namespace": self.namespace})
