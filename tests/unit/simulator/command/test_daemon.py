"""The daemon's lock, and how it begins: with the clusters that it had before, or not at all."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from simulator.azure.ids import parse_id
from simulator.azure.store import Record, Store
from simulator.cluster.clusters import Clusters
from simulator.cluster.controlplane import NotReady
from simulator.command import cli, daemon, daemon_state
from simulator.command.daemon_state import hold_lock, lock_file, running_state, state_file
from simulator.command.environment import token_file
from simulator.host import files, paths, ports

CLUSTER = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/aks"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    return tmp_path


def test_who_asks_whether_a_daemon_runs_is_not_taken_for_one() -> None:
    with lock_file().open("a") as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        assert running_state() is None


def test_a_daemon_that_begins_waits_for_those_who_ask() -> None:
    asking = lock_file().open("a")
    fcntl.flock(asking, fcntl.LOCK_SH)
    threading.Timer(0.3, asking.close).start()
    lock = hold_lock()
    assert lock is not None
    lock.close()


def test_there_is_one_daemon() -> None:
    lock = hold_lock()
    assert lock is not None
    with lock:
        assert hold_lock() is None
        assert running_state() == {"ready": False}  # it has said nothing yet
        files.replace(state_file(), json.dumps({"pid": 1, "ready": True}))
        assert running_state() == {"pid": 1, "ready": True}
    assert running_state() is None


def test_a_daemon_that_begins_is_not_ready_because_a_killed_one_was() -> None:
    """The killed one may be a zombie for some time, so that its process id is still there."""
    files.replace(state_file(), json.dumps({"pid": os.getpid(), "ready": True}))
    assert running_state() is None
    lock = hold_lock()
    assert lock is not None
    with lock:
        assert running_state() == {"ready": False}


@pytest.mark.parametrize("made_of", ["another version", None])
def test_a_daemon_of_other_code_than_the_checkouts_starts_again(
    made_of: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after a `git pull`; those of older versions say nothing of their code."""
    state: dict[str, object] | None = {"pid": 1, "ready": True, "port": ports.port("arm"), "code": made_of}
    done: list[str] = []

    def launch() -> None:
        nonlocal state
        done.append("launch")
        state = {"pid": 2, "ready": True, "code": daemon_state.code()}

    monkeypatch.setattr(daemon_state, "running_state", lambda: state)
    monkeypatch.setattr(cli, "stop", lambda: done.append("stop"))
    monkeypatch.setattr(cli, "_launch", launch)
    cli.start()
    assert done == ["stop", "launch"]
    assert "the code of this checkout has changed" in " ".join(capsys.readouterr().err.split())
    cli.start()
    assert done == ["stop", "launch"]  # it is this checkout's


@pytest.mark.parametrize("state", ["Succeeded", "Failed"])
def test_a_cluster_that_does_not_boot_ends_the_daemon_and_it_says_why(
    state: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def create(_: Clusters, cluster_id: str) -> None:
        raise NotReady(f"kube-apiserver of {cluster_id} did not become ready")

    monkeypatch.setattr(Clusters, "create", create)
    _store_cluster(state)

    assert daemon.main() == 1

    assert capsys.readouterr().err == f"kube-apiserver of {CLUSTER} did not become ready\n"
    assert running_state() is None
    assert not state_file().exists()


def test_what_was_cut_short_and_does_not_end_ends_the_daemon(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = threading.Event()
    monkeypatch.setattr(Clusters, "create", lambda *_: stopped.wait())
    monkeypatch.setattr(Clusters, "stop", lambda _: stopped.set())
    monkeypatch.setattr(daemon, "_RESUME_TIMEOUT_S", 0.1)
    _store_cluster("Creating")

    assert daemon.main() == 1

    assert f"did not end in 0.1 s: {CLUSTER}." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda text: text[:40], "Invalid JSON"),
        (lambda text: json.dumps(json.loads(text) | {"body": 1}), "body: Input should be"),
    ],
)
def test_a_resource_that_cannot_be_read_ends_the_daemon_and_it_says_which(
    spoil: Callable[[str], str], why: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _store_cluster("Succeeded")
    (file,) = (home / "azure").glob("*.json")
    file.write_text(spoil(file.read_text()))
    files.replace(token_file(), "secret")

    assert daemon.main() == 1

    said = capsys.readouterr().err
    assert str(file) in said
    assert why in said
    assert f"rm {file} " in said
    assert "Traceback" not in said


def _store_cluster(state: str) -> None:
    properties = {"provisioningState": state, "nodeResourceGroup": "MC_rg_aks_westeurope"}
    record = Record(parse_id(CLUSTER), {"location": "westeurope", "properties": properties})
    Store(paths.home() / "azure").put(record)
