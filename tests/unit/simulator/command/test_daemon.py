from __future__ import annotations

import fcntl
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

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


def test_a_command_that_reads_the_state_is_not_a_daemon() -> None:
    with lock_file().open("a") as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        assert running_state() is None


def test_a_starting_daemon_waits_for_commands_that_read_the_state() -> None:
    asking = lock_file().open("a")
    fcntl.flock(asking, fcntl.LOCK_SH)
    threading.Timer(0.3, asking.close).start()
    with lock():
        pass


def lock() -> IO[str]:
    held = hold_lock()
    assert held is not None
    return held


def test_there_is_one_daemon() -> None:
    with lock():
        assert hold_lock() is None
        assert running_state() == {"ready": False}  # no state written yet
        files.replace(state_file(), json.dumps({"pid": 1, "ready": True}))
        assert running_state() == {"pid": 1, "ready": True}
    assert running_state() is None


def test_a_new_daemon_ignores_the_state_of_a_killed_one() -> None:
    """A killed daemon may be a zombie, whose process id still exists."""
    files.replace(state_file(), json.dumps({"pid": os.getpid(), "ready": True}))
    assert running_state() is None
    with lock():
        assert running_state() == {"ready": False}


@pytest.mark.parametrize("code", ["another version", None])
def test_restarts_a_daemon_that_runs_other_code(
    code: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state: dict[str, object] | None = {"pid": 1, "ready": True, "port": ports.port("arm"), "code": code}
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
    assert done == ["stop", "launch"]  # it runs this checkout's code now


@pytest.mark.parametrize("state", ["Succeeded", "Failed"])
def test_ends_with_the_error_of_a_cluster_that_does_not_boot(
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


def test_ends_if_an_interrupted_operation_does_not_end(
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
    ("corrupt", "why"),
    [
        (lambda text: text[:40], "Invalid JSON"),
        (lambda text: json.dumps(json.loads(text) | {"body": 1}), "body: Input should be"),
    ],
)
def test_ends_with_the_file_of_an_unreadable_resource(
    corrupt: Callable[[str], str], why: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _store_cluster("Succeeded")
    (file,) = (home / "azure").glob("*.json")
    file.write_text(corrupt(file.read_text()))
    files.replace(token_file(), "secret")
    assert daemon.main() == 1
    error = capsys.readouterr().err
    assert [text for text in (str(file), why, f"rm {file} ") if text not in error] == []
    assert "Traceback" not in error


def _store_cluster(state: str) -> None:
    properties = {"provisioningState": state, "nodeResourceGroup": "MC_rg_aks_westeurope"}
    record = Record(parse_id(CLUSTER), {"location": "westeurope", "properties": properties})
    Store(paths.home() / "azure").put(record)
