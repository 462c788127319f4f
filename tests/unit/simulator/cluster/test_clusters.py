from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from simulator.cluster import clusters
from simulator.cluster.clusters import Clusters
from simulator.cluster.controlplane import ControlPlane, NotReady
from simulator.host import paths, ports
from simulator.host.processes import Process, leftovers
from simulator.kube.client import ApiError
from tests.support.waiting import eventually

ONE, OTHER = (f"/subscriptions/s/resourceGroups/rg/providers/p/managedClusters/{name}" for name in ("one", "other"))
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    return tmp_path


class Booting:
    """`ONE` boots until `go` is set; `up` has running ones."""

    began, go = threading.Event(), threading.Event()
    up: set[str] = set()

    def __init__(self, cluster_id: str, *_: object) -> None:
        self._id = cluster_id
        if cluster_id == ONE:
            self.began.set()
            assert self.go.wait(10)
        self.up.add(cluster_id)

    def stop(self) -> None:
        self.up.remove(self._id)


@pytest.fixture
def booting(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Clusters, threading.Thread]]:
    monkeypatch.setattr(clusters, "RunningCluster", Booting)
    Booting.began.clear()
    Booting.go.clear()
    Booting.up.clear()
    made = Clusters((), lambda *_: {})
    thread = threading.Thread(target=made.create, args=(ONE,))
    thread.start()
    assert Booting.began.wait(10)
    yield made, thread
    Booting.go.set()
    thread.join()


def test_a_boot_does_not_block_other_clusters(booting: tuple[Clusters, threading.Thread]) -> None:
    made, _ = booting
    other = threading.Thread(target=made.create, args=(OTHER,), daemon=True)
    other.start()
    other.join(5)
    assert Booting.up == {OTHER}
    assert list(made.all()) == ["rg+other"]


def test_stop_ends_a_booting_cluster_and_prevents_others(
    booting: tuple[Clusters, threading.Thread],
) -> None:
    made, boot = booting
    stop = threading.Thread(target=made.stop)
    stop.start()
    Booting.go.set()
    for thread in (boot, stop):
        thread.join(10)
    with pytest.raises(NotReady, match="being stopped"):
        made.create(OTHER)
    assert Booting.up == set()


def test_a_failed_boot_leaves_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(plane: ControlPlane) -> None:
        plane.supervisor.start(Process("etcd", SLEEP, plane.folder / "etcd.log"))
        eventually(leftovers, every=0.001)
        raise NotReady("kube-apiserver did not become ready")

    monkeypatch.setattr(ControlPlane, "start", start)
    made = Clusters((), lambda *_: {})
    for _ in range(2):  # also at the next attempt
        with pytest.raises(NotReady):
            made.create(ONE)
        assert leftovers() == []
        ports.require_free("rg+one.egress")
    assert made.all() == {}


def test_a_deletion_fails_if_files_stay() -> None:
    folder = paths.cluster(ONE)
    folder.parent.mkdir(parents=True)
    folder.touch()  # no folder, so it cannot be emptied
    with pytest.raises(OSError, match=r"rg\+one"):
        Clusters((), lambda *_: {}).delete(ONE)


def test_a_deletion_can_be_repeated() -> None:
    (paths.cluster(ONE) / "etcd").mkdir(parents=True)
    for _ in range(2):
        Clusters((), lambda *_: {}).delete(ONE)
    assert not paths.cluster(ONE).exists()


def node(version: str) -> dict[str, Any]:
    return {"metadata": {"name": "n", "labels": {}}, "spec": {}, "status": {"nodeInfo": {"kubeletVersion": version}}}


@pytest.mark.parametrize(("now", "patched"), [("v1.36.1", True), ("v1.35.4", False)])
def test_nodes_of_an_upgraded_pool_report_its_version(now: str, patched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    patches: list[tuple[Any, str]] = []

    def patch(*args: Any, subresource: str = "") -> None:
        patches.append((args[-1], subresource))

    kube = SimpleNamespace(list=lambda *_: [node("v1.35.4")], patch=patch)
    made = Clusters((), lambda *_: {})
    monkeypatch.setattr(made, "running", lambda _: SimpleNamespace(kube=kube))
    assert made.set_nodes(ONE, [node(now)]) == {}
    assert patches == ([({"status": {"nodeInfo": {"kubeletVersion": now}}}, "status")] if patched else [])


def test_an_invalid_node_does_not_block_others(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []

    def create(wanted: dict[str, Any]) -> None:
        if wanted["metadata"]["name"] == "bad":
            raise ApiError(422, "Invalid", "a valid label must be")
        names.append(wanted["metadata"]["name"])

    kube = SimpleNamespace(list=lambda *_: [], create=create, patch=lambda *_, **__: None)
    made = Clusters((), lambda *_: {})
    monkeypatch.setattr(made, "running", lambda _: SimpleNamespace(kube=kube))
    wanted = [node("v1") | {"metadata": {"name": name, "labels": {}}} for name in ("bad", "good")]
    assert made.set_nodes(ONE, wanted) == {"bad": "a valid label must be"}
    assert names == ["good"]


def test_a_command_has_a_timeout(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Clusters((), lambda *_: {})
    authority = SimpleNamespace(kubeconfig=lambda *_: {"users": [{}]})
    plane = SimpleNamespace(authority=authority, server="https://127.0.0.1:1", name="one")
    monkeypatch.setattr(made, "running", lambda _: SimpleNamespace(plane=plane))
    monkeypatch.setattr(paths, "tool", lambda _: Path(sys.executable))
    monkeypatch.setattr(clusters, "_RUN_TIMEOUT_S", 0.2)
    with pytest.raises(TimeoutError, match=r"kubectl did not end within 0\.2 s"):
        made.run(ONE, ["kubectl", *SLEEP[1:]], home, "")
