from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

import pytest

from k8s.objects import Object
from simulator.cluster.load_balancers import INTERNAL, NODE_SUBNET, PUBLIC
from tests.e2e.azure_cluster import AzureCluster
from tests.support.plugin_engine import KubernetesPlugin
from tests.support.world import World, eventually_equals

pytestmark = pytest.mark.simulator
REASONS = ["DeletedLoadBalancer", "DeletingLoadBalancer", "EnsuredLoadBalancer", "EnsuringLoadBalancer"]


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


def service(name: str, **annotations: str) -> Object:
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def live(cluster: AzureCluster, name: str) -> Object | None:
    return cluster.kube.find("v1", "Service", name, "default")


def reasons(cluster: AzureCluster, name: str) -> list[str]:
    events = cluster.kube.list("v1", "Event", "default", fields=f"involvedObject.name={name}")
    return sorted(event["reason"] for event in events if "LoadBalancer" in event["reason"])


def test_pulumi_creates_services_with_an_address_and_deletes_them(
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
    eventually_equals(lambda: reasons(cluster, "public"), REASONS, 30)
