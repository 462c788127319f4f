"""The kubelet's way into a running sandbox: further commands, connections, signals; and the probes that use it."""

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
"""Has Python."""


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
    """Exit code and output of a command in the container."""
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


def test_a_command_killed_by_a_signal_ends_as_shells_tell_it(server: Shim) -> None:
    assert run(server, "bash", "-c", "kill -9 $$")[0] == 128 + 9


def test_a_connection_reaches_a_port_that_only_the_container_sees(server: Shim) -> None:
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


def test_who_asks_for_a_port_by_an_address_is_refused_in_the_networks_way(server: Shim) -> None:
    with pytest.raises(ConnectionRefusedError, match="connection refused"):
        server.dial(9999)


def test_what_has_ended_answers_no_more(tmp_path: Path) -> None:
    start(tmp_path, "true").wait(30)
    with pytest.raises(ShimError, match=r"does not run|ended meanwhile"):  # its socket may outlive it by a moment
        Shim(tmp_path / "run").connect(8000)


def test_a_signal_lets_the_command_tidy_up(tmp_path: Path) -> None:
    script = "trap 'exit 5' TERM; echo >/tmp/trapped; while true; do sleep 0.1; done"
    process = start(tmp_path, script)
    shim = Shim(tmp_path / "run")
    eventually(lambda: run(shim, "test", "-f", "/tmp/trapped")[0] == 0)
    shim.signal(signal.SIGTERM)
    assert process.wait(30) == 5


class Told:
    """What a prober reports of a container with these probes."""

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
def test_a_container_is_ready_once_its_probe_succeeds_or_at_once_without_one(
    server: Shim, probe: Object | None
) -> None:
    probes = {"readinessProbe": {**probe, "periodSeconds": 0.1, "timeoutSeconds": 5}} if probe else {}
    told = Told(server, **probes)
    eventually(lambda: told.ready[-1:] == [True])
    told.ended.set()


def test_a_container_is_not_ready_while_its_probe_fails(server: Shim) -> None:
    probe = {
        "httpGet": {"path": "/busy", "port": 8000},
        "periodSeconds": 0.1,
        "failureThreshold": 2,
        "timeoutSeconds": 5,
    }
    told = Told(server, readinessProbe=probe)
    eventually(lambda: "Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 404" in told.warned)
    eventually(lambda: told.ready == [False])
    run(server, "touch", "/tmp/busy")
    eventually(lambda: told.ready == [False, True])
    run(server, "rm", "/tmp/busy")
    eventually(lambda: told.ready == [False, True, False])
    told.ended.set()


def test_a_container_that_does_not_live_is_ended(tmp_path: Path) -> None:
    process = start(tmp_path, "sleep 600")
    probe = {"exec": {"command": ["test", "-f", "/tmp/alive"]}, "periodSeconds": 0.1}
    told = Told(Shim(tmp_path / "run"), livenessProbe=probe)
    assert process.wait(30) == 128 + signal.SIGTERM
    assert "Killing: Container main failed liveness probe, will be restarted" in told.warned
    told.ended.set()


def test_nothing_is_probed_before_the_container_has_started(server: Shim) -> None:
    gate = {"exec": {"command": ["test", "-f", "/tmp/started"]}, "periodSeconds": 0.1, "failureThreshold": 1000}
    told = Told(server, startupProbe=gate)
    eventually(lambda: told.warned)
    assert told.ready == []
    run(server, "touch", "/tmp/started")
    eventually(lambda: told.ready[-1:] == [True])
