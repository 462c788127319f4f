from __future__ import annotations

import base64
import io
import zipfile
from pathlib import Path

import pytest

from simulator.azure.types.agent_pool import life
from simulator.world.boots import BootStore
from tests.support.arm import CLUSTER, Arm, cluster_body, pool_body


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))


def states(arm: Arm) -> list[str]:
    found = arm.get(CLUSTER)["properties"]
    return [each["powerState"]["code"] for each in (found, *found["agentPoolProfiles"])]


def test_stops_and_starts_a_cluster(cluster: Arm) -> None:
    nodes = cluster.node_names()
    assert cluster.call("POST", f"{CLUSTER}/stop").status_code == 204
    assert (states(cluster), cluster.backend.halted) == (["Stopped", "Stopped"], [CLUSTER])
    assert cluster.call("POST", f"{CLUSTER}/start").status_code == 204
    assert (states(cluster), cluster.node_names()) == (["Running", "Running"], nodes)
    assert all(BootStore().last(node) for node in nodes)


def test_a_stopped_cluster_allows_only_deletion(cluster: Arm) -> None:
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


def test_a_stopped_cluster_stays_stopped_after_a_restart(cluster: Arm) -> None:
    cluster.call("POST", f"{CLUSTER}/stop")
    cluster.backend.nodes.clear()
    world = cluster.server.world
    (record,) = world.store.all("Microsoft.ContainerService/managedClusters")
    assert life.boot(world, record.id) == {}
    assert not cluster.backend.nodes


def test_rotates_certificates_of_a_running_cluster(cluster: Arm) -> None:
    assert cluster.call("POST", f"{CLUSTER}/rotateClusterCertificates").status_code == 204
    assert cluster.backend.rotated == [CLUSTER]
    assert all(BootStore().last(node) for node in cluster.node_names())
    cluster.call("POST", f"{CLUSTER}/stop")
    assert cluster.call("POST", f"{CLUSTER}/rotateClusterCertificates").status_code == 409


def test_runs_a_command_with_its_files(cluster: Arm) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("job.yaml", "{}")
    body = {"command": "kubectl apply -f job.yaml", "context": base64.b64encode(archive.getvalue()).decode()}
    begun = cluster.call("POST", f"{CLUSTER}/runCommand", body)
    assert (begun.status_code, begun.content) == (202, b"")
    answer = cluster.client.get(begun.headers["Location"]).json()["properties"]
    assert (answer["exitCode"], answer["logs"]) == (0, "kubectl apply -f job.yaml ['job.yaml']")


def test_a_command_fails_at_its_timeout(cluster: Arm, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> tuple[int, str]:
        raise TimeoutError("kubectl did not end")

    monkeypatch.setattr(cluster.backend, "run", run)
    begun = cluster.call("POST", f"{CLUSTER}/runCommand", {"command": "kubectl get pods -w"})
    answer = cluster.client.get(begun.headers["Location"]).json()["properties"]
    assert (answer["provisioningState"], answer["reason"]) == ("Failed", "kubectl did not end")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"command": "kubectl get pods; rm -rf /"}, "a single command of kubectl or helm, without a shell"),
        ({"command": "bash"}, "not 'bash'"),
        ({"command": "kubectl 'get"}, "without a shell"),
        ({}, "not ''"),
        ({"command": "kubectl get pods", "context": "no archive"}, "a zip archive in base64"),
    ],
)
def test_rejects_other_commands(body: dict[str, str], words: str, cluster: Arm) -> None:
    status, _, message = cluster.refusal(cluster.call("POST", f"{CLUSTER}/runCommand", body))
    assert (status, words in message) == (400, True), message
