from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from simulator.azure.ids import ResourceId, parse_id
from simulator.azure.store import BadRecords, Record, Store
from tests.support.arm import CLUSTER, GROUP, Arm, FakeBackend, client_of, cluster_body, pool_body, pool_path, start
from tests.support.case_files import case_table
from tests.support.networks import make


def _id(name: str = "rg") -> ResourceId:
    return parse_id(f"{GROUP.rpartition('/')[0]}/{name}")


def test_records_survive_a_restart(tmp_path: Path) -> None:
    Store(tmp_path).put(Record(_id(), {"location": "eastus"}, correlation="c", facts={"index": 1}))
    found = Store(tmp_path).get(_id("RG"))
    assert found is not None
    assert (found.body, found.correlation, found.facts) == ({"location": "eastus"}, "c", {"index": 1})


def test_ignores_a_partial_file(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(Record(_id(), {"location": "eastus"}))
    file = next(tmp_path.glob("*.json"))
    file.with_suffix(".partial").write_text('{"id": "/subscr')
    assert [record.body for record in Store(tmp_path).all()] == [{"location": "eastus"}]
    assert list(tmp_path.glob("*.partial")) == []


def test_returns_copies_of_records(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(Record(_id(), {"tags": {}}))
    found = store.get(_id())
    assert found is not None
    found.body["tags"]["x"] = "y"
    assert store.all()[0].body == {"tags": {}}


def test_parallel_writers_lose_no_resource(tmp_path: Path) -> None:
    store = Store(tmp_path)
    writers = [threading.Thread(target=store.put, args=(Record(_id(f"rg{n}"), {}),)) for n in range(20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(Store(tmp_path).all()) == 20


@case_table(__file__, "wrong", file="records")
def test_reports_unreadable_files_with_the_fix(tmp_path: Path, content: str, why: str) -> None:
    Store(tmp_path).put(Record(_id(), {}))
    bad = tmp_path / "managedClusters-it's-0.json"
    bad.write_text(content)
    with pytest.raises(BadRecords) as caught:
        Store(tmp_path)
    lines = str(caught.value).splitlines()
    assert lines[1].startswith(f"  {bad}: ")
    assert why in lines[1]
    (forget,) = (line.partition("  #")[0] for line in lines if line.startswith("  rm "))
    subprocess.run(["bash", "-c", forget], check=True)
    assert [record.id for record in Store(tmp_path).all()] == [_id()]


@contextlib.contextmanager
def _process(folder: Path) -> Iterator[httpx.Client]:
    command = [sys.executable, "-m", "tests.unit.simulator.azure.killed_server", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        endpoint = process.stdout.readline().strip()
        with client_of(endpoint, folder.parent) as client:
            try:
                yield client
            finally:
                process.kill()


def _put(client: httpx.Client, path: str, version: str, body: object) -> None:
    assert client.put(path, params={"api-version": version}, json=body).status_code in (200, 201)


def test_resumes_operations_of_a_killed_server(tmp_path: Path) -> None:
    with _process(tmp_path / "azure") as client:
        _put(client, GROUP, "2024-03-01", {"location": "eastus"})
        system = cluster_body()["properties"]["agentPoolProfiles"]
        gpu = pool_body()["properties"] | {"name": "gpu"}
        _put(client, CLUSTER, "2025-09-01", cluster_body(agentPoolProfiles=[*system, gpu]))
    arm = start(tmp_path / "azure", FakeBackend())
    arm.done()
    assert arm.get(CLUSTER)["properties"]["provisioningState"] == "Succeeded"
    assert arm.get(pool_path())["properties"]["provisioningState"] == "Succeeded"
    assert len(arm.node_names()) == 4
    arm.stop()


def test_resumes_a_killed_deletion(tmp_path: Path, cluster: Arm) -> None:
    cluster.backend.gate.clear()
    cluster.call("DELETE", GROUP)
    cluster.server.stop()
    again = start(tmp_path / "azure", FakeBackend())
    again.done()
    assert again.server.world.store.all() == []
    assert again.backend.deleted == [CLUSTER]
    again.stop()


def test_deletes_pools_whose_cluster_was_never_stored(tmp_path: Path, cluster: Arm) -> None:
    cluster.server.stop()
    cluster.server.world.store.remove(parse_id(CLUSTER))  # as if killed before the cluster is written
    again = start(tmp_path / "azure", FakeBackend())
    assert [record.id.name for record in again.server.world.store.all()] == ["rg"]
    make(again, CLUSTER, cluster_body())
    assert len(again.node_names()) == 2
    again.stop()


def test_starts_stored_clusters_with_their_nodes(tmp_path: Path, cluster: Arm) -> None:
    make(cluster, pool_path(), pool_body())
    names = cluster.node_names()
    cluster.server.stop()
    again = start(tmp_path / "azure", FakeBackend())
    again.done()
    assert again.node_names() == names
    again.stop()


def test_a_stop_does_not_fail_operations(tmp_path: Path, cluster: Arm) -> None:
    cluster.backend.gate.clear()
    cluster.backend.failure = "the cluster was stopped"
    cluster.put(pool_path(), pool_body())
    cluster.server.stop()
    cluster.backend.gate.set()
    assert cluster.server.operations.wait(20)
    found = Store(tmp_path / "azure").get(parse_id(pool_path()))
    assert found is not None
    assert found.state == "Creating"


@pytest.mark.parametrize("path", ["", "/subscriptions/s", f"{CLUSTER}/agentPools", "nonsense"])
def test_rejects_an_invalid_id(path: str) -> None:
    with pytest.raises(ValueError, match="is not the id of a resource"):
        parse_id(path)
