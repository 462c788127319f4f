"""The platform on top of its foundation: cluster access, operators, GPU pools, the namespace of workloads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pulumi

from components import images
from components._base import Component
from components.access.kubernetes_access import KubernetesAccess
from components.azure.identity import Federation
from components.azure.node_pools import AutoscalerPriorities, NodePools
from components.context import WorkloadContext
from components.foundation import Foundation
from components.operators import Operator, Operators
from components.preflight.existing import Existing
from components.storage.sas import SasAlert
from components.storage.shared_files import shared_class
from components.workspace import Workspace
from config.schema.models import Placement
from config.schema.names import WORKLOAD_NAMESPACE
from config.schema.operators import MONITORING, NODE_HEALTH


class Platform(Component):
    """The resources that workloads need besides the foundation. The deployer must be able to reach the cluster."""

    def __init__(
        self,
        name: str,
        foundation: Foundation,
        operators: Mapping[str, Operator[Any]],
        existing: Existing,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        self.foundation = foundation
        settings, cluster, registry = foundation.settings, foundation.cluster, foundation.registry
        self.settings = settings
        admin = None if settings.cluster.deployer_object_id else foundation.admin
        self.access = KubernetesAccess("access", cluster, settings.cluster, admin, opts=self.child())
        in_cluster = self.child(providers={"kubernetes": self.access.provider})
        hooks = self.access.first_contact
        self.operators = Operators(
            "operators", operators, settings, self.image, registry.resource, hooks, opts=in_cluster
        )
        # The first update creates policies and pools in parallel, which saves minutes. Later updates change the
        # policies first, so that new nodes get the new drivers.
        policies = self.operators.policies if existing.cluster else []
        self.pools = NodePools(
            "pools", cluster, settings, there=existing.node_counts, after=policies, opts=self.child()
        )
        if settings.cluster.autoscaler.expander == "priority":
            AutoscalerPriorities("autoscaler-priorities", settings, hooks, opts=in_cluster)
        # The namespace gets all containers, because pods that users deploy may mount any of them.
        self.federation = self._identities() if settings.storage.by_identity() else None
        checks = self.operators.installed.get(NODE_HEALTH)
        self.workspace = Workspace(
            "workspace",
            WORKLOAD_NAMESPACE,
            foundation.containers,
            hooks,
            federation=self.federation,
            checks=checks.followed if checks else None,
            opts=in_cluster,
        )
        signed = [(access, access.sas) for access in foundation.containers.values() if access.sas]
        if signed and (monitoring := self.operators.installed.get(MONITORING)):
            SasAlert("sas-ends", signed, self.workspace.namespace, monitoring.followed, opts=in_cluster)
        files = foundation.shared_files
        offered = [files.offer(self.access.provider, hooks)] if files else []
        after = self.child(provider=self.access.provider, depends_on=[self.workspace])
        self._shared_class = shared_class(settings, [*offered, *self.operators.provisioners], after)
        self.register_outputs({"cluster": cluster.name})

    def _identities(self) -> Federation:
        settings, foundation = self.settings, self.foundation
        return Federation(
            resource_group=foundation.resource_group.name,
            location=settings.location,
            cluster=settings.names.cluster,
            issuer=foundation.cluster.issuer,
        )

    def image(self, name: str) -> str:
        mirror = self.settings.images.registry
        return images.own(name, login_server=self.foundation.registry.login_server, mirror=mirror)

    def context_of(self, _: Placement[Any]) -> WorkloadContext:
        return self.context

    @cached_property
    def context(self) -> WorkloadContext:
        foundation = self.foundation
        return WorkloadContext(
            provider=self.access.provider,
            namespace=self.workspace.namespace,
            service_account=self.workspace.account,
            pools=self.pools.pools,
            rdma_resource=self.settings.rdma_resource,
            taint_effect=self.settings.operators.failure_effect,
            image=self.image,
            volumes=self.workspace.volumes,
            shared_class=self._shared_class,
            # If Azure rejects a registry or pool, jobs must not be replaced by jobs that cannot run.
            ready=[
                foundation.registry.resource,
                *foundation.entrances,
                *self.pools.resources,
                *self.operators.webhooks,
            ],
        )
