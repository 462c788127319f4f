"""Services of type LoadBalancer on a simulated cluster."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

import pytest

from k8s.objects import Object
from simulator.cluster.load_balancers import FINALIZER, INTERNAL, NODE_SUBNET, PUBLIC
from tests.e2e.azure_cluster import AzureCluster
from tests.support.plugin_engine import KubernetesPlugin
from tests.support.world import World, eventually_equals

pytestmark = pytest.mark.simulator
TOLD = ["DeletedLoadBalancer", "DeletingLoadBalancer", "EnsuredLoadBalancer", "EnsuringLoadBalancer"]


@pytest.fixture(scope="module")
def cluster(world: World) -> Iterator[AzureCluster]:
    made = AzureCluster(world, "balancers")
    made.create()
    yield made
    made.delete()


@pytest.fixture(scope="module")
def plugin(cluster: AzureCluster) -> Iterator[KubernetesPlugin]:
    made = KubernetesPlugin(
        {"kubeconfig": cluster.world.kubeconfig(cluster.name).read_text(), "clusterIdentifier": "test"}
    )
    yield made
    made.close()


def service(name: str, kind: str = "LoadBalancer", **annotations: str) -> Object:
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"type": kind, "ports": [{"port": 80}]},
    }


def live(cluster: AzureCluster, name: str) -> Object | None:
    return cluster.kube.find("v1", "Service", name, "default")


def balanced(cluster: AzureCluster, name: str) -> tuple[int, list[str]]:
    """How many addresses a Service has, and its finalizers."""
    found = cluster.kube.get("v1", "Service", name, "default")
    return len(found["status"]["loadBalancer"].get("ingress", [])), found["metadata"].get("finalizers", [])


def reasons(cluster: AzureCluster, name: str) -> list[str]:
    """Of its load balancer: the API server may report of its cluster IP too (ClusterIPNotAllocated)."""
    events = cluster.kube.list("v1", "Event", "default", fields=f"involvedObject.name={name}")
    return sorted(event["reason"] for event in events if "LoadBalancer" in event["reason"])


def test_pulumi_gets_a_service_with_an_address_and_takes_it_away_whole(
    cluster: AzureCluster, plugin: KubernetesPlugin
) -> None:
    kind = "kubernetes:core/v1:Service"
    public = plugin.create(kind, "public", service("public"))
    internal = plugin.create(kind, "internal", service("internal", **{INTERNAL: "true"}))
    for made, network in ((public, PUBLIC), (internal, NODE_SUBNET)):
        (ingress,) = made.state["status"]["loadBalancer"]["ingress"]
        assert ingress["ipMode"] == "VIP"
        assert ip_address(ingress["ip"]) in network
    plugin.delete(public)
    plugin.delete(internal)
    assert live(cluster, "public") is live(cluster, "internal") is None
    eventually_equals(lambda: reasons(cluster, "public"), TOLD, 30)


def test_another_type_takes_the_address_away(cluster: AzureCluster) -> None:
    cluster.kube.create(service("changing"))
    eventually_equals(lambda: balanced(cluster, "changing"), (1, [FINALIZER]), 30)
    cluster.kube.patch("v1", "Service", "changing", "default", {"spec": {"type": "ClusterIP"}})
    eventually_equals(lambda: balanced(cluster, "changing"), (0, []), 30)
    eventually_equals(lambda: reasons(cluster, "changing"), TOLD, 30)
