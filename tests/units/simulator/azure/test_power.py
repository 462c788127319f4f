"""A cluster that is stopped: `az aks stop`, and what AKS refuses until it is started again."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.azure.types.agent_pool import life
from simulator.world.boots import BootStore
from tests.support.arm import CLUSTER, Arm, cluster_body, pool_body


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where boots of nodes are noted."""
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))


def states(arm: Arm) -> list[str]:
    found = arm.get(CLUSTER)["properties"]
    return [each["powerState"]["code"] for each in (found, *found["agentPoolProfiles"])]


def test_a_stopped_cluster_keeps_its_pools_and_has_no_api_server(cluster: Arm) -> None:
    nodes = cluster.node_names()
    assert cluster.call("POST", f"{CLUSTER}/stop").status_code == 204
    assert (states(cluster), cluster.backend.halted) == (["Stopped", "Stopped"], [CLUSTER])
    assert cluster.call("POST", f"{CLUSTER}/start").status_code == 204
    assert (states(cluster), cluster.node_names()) == (["Running", "Running"], nodes)
    assert all(BootStore().last(node) for node in nodes)


def test_nothing_of_it_can_be_changed_but_it_can_be_deleted(cluster: Arm) -> None:
    cluster.call("POST", f"{CLUSTER}/stop")
    state = "managed cluster is in Provisioning State(Succeeded) and Power State(Stopped), "
    for method, path, body, doing in (
        ("POST", f"{CLUSTER}/stop", None, "stopping"),
        ("PUT", CLUSTER, cluster_body(), "updating"),
        ("PUT", f"{CLUSTER}/agentPools/gpu", pool_body(), "updating"),
    ):
        refusal = cluster.refusal(cluster.call(method, path, body))
        assert refusal == (409, "OperationNotAllowed", f"{state}{doing} cannot be performed")
    assert cluster.call("DELETE", CLUSTER).status_code == 202
    cluster.done()
    assert cluster.call("GET", CLUSTER).status_code == 404


def test_it_stays_stopped_when_the_simulator_starts_again(cluster: Arm) -> None:
    cluster.call("POST", f"{CLUSTER}/stop")
    cluster.backend.nodes.clear()
    world = cluster.server.world
    (record,) = world.store.all("Microsoft.ContainerService/managedClusters")
    assert life.boot(world, record.id) == {}
    assert not cluster.backend.nodes
