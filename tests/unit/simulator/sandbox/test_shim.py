from __future__ import annotations

import http.client
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s.objects import Object
from simulator.kubelet.probes import Prober
from simulator.kubelet.shim_client import Shim, ShimError
from simulator.sandbox import sandbox
from tests.support.waiting import eventually
from tests.unit.simulator.sandbox.node import Node

SERVER = "cd /tmp; echo fine >well; exec python3 -m http.server 8000 --bind 127.0.0.1"
IMAGE = "node-labeler"
"""An image with Python."""


def start(folder: Path, script: str) -> subprocess.Popen[bytes]:
    container: Object = {"image": IMAGE, "command": ["bash", "-c", script], "securityContext": {}, "volumeMounts": []}
    node = Node(folder)
    (folder / "world").mkdir()
    (folder / "world" / "world.json").write_text('{"nodes": {}, "pods": {}}')
    return sandbox.start(node.spec({"volumes": []}, container), subprocess.DEVNULL)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Shim]:
    process = start(tmp_path, SERVER)
    shim = Shim(tmp_path / "run")
    try:
        eventually(lambda: run(shim, "test", "-f", "/tmp/well")[0] == 0)
        yield shim
    finally:
        process.kill()
        process.wait()


def run(shim: Shim, *argv: str) -> tuple[int, str]:
    null = os.open(os.devnull, os.O_RDWR)
    reading, writing = os.pipe()
    try:
        code = shim.run(argv, [null, writing, null])
    finally:
        os.close(null)
        os.close(writing)
    with os.fdopen(reading) as output:
        return code, output.read()


def test_a_command_has_the_containers_files_and_environment(server: Shim) -> None:
    assert run(server, "bash", "-c", "cat /tmp/well; echo $HOSTNAME; exit 3") == (3, "fine\ntool\n")


def test_a_command_killed_by_a_signal_has_the_exit_code_of_shells(server: Shim) -> None:
    assert run(server, "bash", "-c", "kill -9 $$")[0] == 128 + 9


def test_connects_to_a_port_of_the_container(server: Shim) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", 8000)

    def connected() -> bool:
        try:
            connection.sock = server.connect(8000)
        except ShimError:  # it does not listen yet
            return False
        return True

    eventually(connected)
    connection.request("GET", "/well")
    assert connection.getresponse().read() == b"fine\n"
    with pytest.raises(ShimError, match="dial tcp4 127.0.0.1:9999: connect: connection refused"):
        server.connect(9999)


def test_dial_has_the_networks_error(server: Shim) -> None:
    with pytest.raises(ConnectionRefusedError, match="connection refused"):
        server.dial(9999)


def test_an_ended_sandbox_has_no_connections(tmp_path: Path) -> None:
    start(tmp_path, "true").wait(30)
    with pytest.raises(ShimError, match=r"does not run|has ended"):  # its socket may briefly outlive it
        Shim(tmp_path / "run").connect(8000)


def test_a_command_can_handle_a_signal(tmp_path: Path) -> None:
    script = "trap 'exit 5' TERM; echo >/tmp/trapped; while true; do sleep 0.1; done"
    process = start(tmp_path, script)
    shim = Shim(tmp_path / "run")
    eventually(lambda: run(shim, "test", "-f", "/tmp/trapped")[0] == 0)
    shim.signal(signal.SIGTERM)
    assert process.wait(30) == 5


class Probed:
    def __init__(self, shim: Shim, **probes: Object) -> None:
        self.ready: list[bool] = []
        self.warned: list[str] = []
        self.ended = threading.Event()
        container = {"name": "main", "ports": [{"name": "http", "containerPort": 8000}], **probes}
        warn = lambda reason, message: self.warned.append(f"{reason}: {message}")  # noqa: E731 - a callback
        Prober(container, shim, self.ended, 5, self.ready.append, warn).start()


@pytest.mark.parametrize(
    "probe",
    [
        None,
        {"httpGet": {"path": "/well", "port": "http"}},
        {"tcpSocket": {"port": 8000}},
        {"exec": {"command": ["test", "-f", "/tmp/well"]}},
    ],
)
def test_a_container_is_ready_once_its_probe_succeeds(server: Shim, probe: Object | None) -> None:
    probes = {"readinessProbe": {**probe, "periodSeconds": 0.1, "timeoutSeconds": 5}} if probe else {}
    probed = Probed(server, **probes)
    eventually(lambda: probed.ready[-1:] == [True])
    probed.ended.set()


def test_a_container_is_not_ready_while_its_probe_fails(server: Shim) -> None:
    probe = {
        "httpGet": {"path": "/busy", "port": 8000},
        "periodSeconds": 0.1,
        "failureThreshold": 2,
        "timeoutSeconds": 5,
    }
    probed = Probed(server, readinessProbe=probe)
    eventually(lambda: "Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 404" in probed.warned)
    eventually(lambda: probed.ready == [False])
    run(server, "touch", "/tmp/busy")
    eventually(lambda: probed.ready == [False, True])
    run(server, "rm", "/tmp/busy")
    eventually(lambda: probed.ready == [False, True, False])
    probed.ended.set()


def test_a_failed_liveness_probe_ends_the_container(tmp_path: Path) -> None:
    process = start(tmp_path, "sleep 600")
    probe = {"exec": {"command": ["test", "-f", "/tmp/alive"]}, "periodSeconds": 0.1}
    probed = Probed(Shim(tmp_path / "run"), livenessProbe=probe)
    assert process.wait(30) == 128 + signal.SIGTERM
    assert "Killing: Container main failed liveness probe, will be restarted" in probed.warned
    probed.ended.set()


def test_other_probes_wait_for_the_startup_probe(server: Shim) -> None:
    gate = {"exec": {"command": ["test", "-f", "/tmp/started"]}, "periodSeconds": 0.1, "failureThreshold": 1000}
    probed = Probed(server, startupProbe=gate)
    eventually(lambda: probed.warned)
    assert probed.ready == []
    run(server, "touch", "/tmp/started")
    eventually(lambda: probed.ready[-1:] == [True])
