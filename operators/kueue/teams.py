"""Teams in the cluster: a namespace for each, a queue with its quota, and its members' rights there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component
from components.namespace import Level, namespace
from config.data.scheduling import GPU_RESOURCE, LOCAL_QUEUE, TEAM_LABELS
from config.rules.teams import SLACK
from config.schema.models import Settings
from config.schema.teams import TeamSettings
from operators._lib.rights import admission_policy
from operators.kueue import admission, queues, rights


class Teams(Component):
    """All teams and their shared resources. They depend on Kueue, whose webhooks must answer."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        scheduler: str | None,
        kueue: pulumi.Resource,
        topology: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        pools = list(settings.gpu_pools().values())
        flavor_spec = queues.flavor_spec(pools, topology)
        flavor_name = queues.flavor_name(flavor_spec)
        flavor = self._flavor(flavor_name, flavor_spec, kueue)
        # The role depends on a namespace through Kueue, so the deployer's own role already applies
        # (components/azure/retries.py).
        role = kubernetes.rbac.v1.ClusterRole(
            rights.ROLE, metadata={"name": rights.ROLE}, rules=rights.rules(), opts=self.child(depends_on=[kueue])
        )
        gpus = settings.slack_gpus + sum(team.gpus for team in settings.teams.values())
        hcas = (pool.sku.infiniband.hcas for pool in pools if pool.sku.infiniband)
        of_node = {GPU_RESOURCE: max(pool.gpus for pool in pools), settings.rdma_resource: max(hcas, default=0)}
        policies = admission.policies(scheduler, gpus, of_node, settings.rdma_resource)
        rules = [role, *self._rules(policies, settings.teams.values(), kueue)]
        if settings.slack_gpus:
            quotas = queues.quotas(settings.slack_gpus, pools, settings.rdma_resource)
            queue = queues.cluster_queue_spec(quotas, None, flavor=flavor_name)
            opts = self.child(depends_on=[flavor])
            _made("ClusterQueue", queues.queue_name(SLACK), queue, opts=opts, annotations=queues.FORCE_PATCH)
        for team, chosen in sorted(settings.teams.items()):
            spec = queues.team_queue_spec(team, chosen, pools, settings.rdma_resource, flavor_name)
            Team(team, chosen, spec, flavor, rules, settings.network.pod_range, opts=self.child())
        self.register_outputs({})

    def _flavor(self, name: str, spec: dict[str, Any], kueue: pulumi.Resource) -> pulumi.Resource:
        before = kueue
        if topology := spec.get("topologyName"):
            before = _made("Topology", topology, queues.topology_spec(), opts=self.child(depends_on=[kueue]))
        return _made("ResourceFlavor", name, spec, opts=self.child(depends_on=[before]))

    def _rules(
        self, policies: Mapping[str, Any], teams: Collection[TeamSettings], kueue: pulumi.Resource
    ) -> Iterator[pulumi.Resource]:
        """Yields the priority classes and admission policies, which must exist before members get their rights."""
        for name in rights.CLASSES:
            yield kubernetes.scheduling.v1.PriorityClass(
                name, **rights.priority_class(name), opts=self.child(depends_on=[kueue])
            )
        found = dict(policies)
        if any(team.pins_memory for team in teams):
            found[admission.SECURITY] = admission.security_policy()
        for name, spec in found.items():
            yield admission_policy(name, spec, parent=self, after=[kueue], binding=admission.binding(name))


class Team(Component):
    """The namespace, queue and members' rights of one team.

    The namespace depends on the ClusterQueue, which can only be deleted after its last job. Members get their rights
    only when the policies exist that make them use the queue (`rules`). Their pods have the level `baseline`, without
    access to the node, which also runs other teams' pods. If pods may lock memory, a policy enforces this level
    (policies/team-pod-security.yaml).
    """

    def __init__(
        self,
        name: str,
        team: TeamSettings,
        spec: dict[str, Any],
        flavor: pulumi.Resource,
        rules: Sequence[pulumi.Resource],
        pod_range: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        queue_name = queues.queue_name(name)
        queue = _made("ClusterQueue", queue_name, spec, opts=self.child(depends_on=[flavor]))
        level: Level = "privileged" if team.pins_memory else "baseline"
        labels = {**TEAM_LABELS, **(admission.SECURITY_LABELS if team.pins_memory else {})}
        after = [queue, *(rules if team.pins_memory else [])]
        space = namespace(name, level, parent=self, hooks=None, labels=labels, depends_on=after)
        inside = space.metadata["name"]
        kubernetes.apiextensions.CustomResource(
            f"{name}-{LOCAL_QUEUE}",
            api_version=queues.API,
            kind="LocalQueue",
            metadata={"name": LOCAL_QUEUE, "namespace": inside},
            spec={"clusterQueue": queue_name},
            opts=self.child(),
        )
        isolated = kubernetes.networking.v1.NetworkPolicy(
            f"{name}-{admission.ISOLATION}",
            metadata={"name": admission.ISOLATION, "namespace": inside},
            spec=admission.isolation(pod_range),
            opts=self.child(),
        )
        kubernetes.rbac.v1.RoleBinding(
            f"{name}-{rights.ROLE}",
            metadata={"name": rights.ROLE, "namespace": inside},
            **rights.binding(team),
            opts=self.child(depends_on=[*rules, isolated]),
        )
        self.register_outputs({})


def _made(
    kind: str,
    name: str,
    spec: dict[str, Any],
    opts: pulumi.ResourceOptions,
    annotations: Mapping[str, str] | None = None,
) -> kubernetes.apiextensions.CustomResource:
    metadata = {"name": name, **({"annotations": annotations} if annotations else {})}
    return kubernetes.apiextensions.CustomResource(
        name, api_version=queues.API, kind=kind, metadata=metadata, spec=spec, opts=opts
    )
