from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.azure_cluster import AzureCluster
from tests.support.world import World, eventually

pytestmark = pytest.mark.simulator
SERVER = "cd /tmp; echo hello >greeting; exec python3 -m http.server 8000 --bind 127.0.0.1"
SERVED_BY = "node-labeler"
"""An image of `docker/` with Python."""
CRASHES_ONCE = "cd /work; echo start >>starts; wc -l <starts; test $(wc -l <starts) -gt 1; exec sleep 600"


@pytest.fixture(scope="module")
def cluster(world: World) -> Iterator[AzureCluster]:
    made = AzureCluster(world, "streams")
    made.create()
    made.run("server", SERVER, image=SERVED_BY)
    eventually(lambda: made.phase("server") == "Running", "server runs")
    eventually(
        lambda: kubectl(made, "exec", "server", "--", "test", "-s", "/tmp/greeting").returncode == 0, "it serves"
    )
    yield made
    made.delete()


def _arguments(cluster: AzureCluster, *arguments: str) -> list[str]:
    return ["kubectl", "--kubeconfig", str(cluster.world.kubeconfig(cluster.name)), "-n", "default", *arguments]


def kubectl(cluster: AzureCluster, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _arguments(cluster, *arguments),
        env=cluster.world.environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_exec_runs_a_command_in_the_container_with_both_streams(cluster: AzureCluster) -> None:
    answer = kubectl(cluster, "exec", "server", "--", "bash", "-c", "hostname; pwd; cat /tmp/greeting; echo oh >&2")
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "server\n/\nhello\n", "oh\n")


def test_exec_passes_standard_input(cluster: AzureCluster) -> None:
    sent = "line\n" * 50_000
    assert kubectl(cluster, "exec", "-i", "server", "--", "wc", "-l", stdin=sent).stdout.strip() == "50000"
    assert kubectl(cluster, "exec", "-i", "server", "--", "cat", stdin=sent).stdout == sent


def test_exec_returns_the_commands_exit_code(cluster: AzureCluster) -> None:
    failed = kubectl(cluster, "exec", "server", "--", "bash", "-c", "exit 7")
    assert failed.returncode == 7
    assert "command terminated with exit code 7" in failed.stderr
    unknown = kubectl(cluster, "exec", "server", "--", "vim").stderr
    assert 'exec: "vim": executable file not found in $PATH' in unknown


def test_cp_copies_files_from_and_to_the_container(cluster: AzureCluster, tmp_path: Path) -> None:
    copy = tmp_path / "greeting"
    assert kubectl(cluster, "cp", "server:/tmp/greeting", str(copy)).returncode == 0
    assert copy.read_text() == "hello\n"
    copy.write_text("changed\n")
    assert kubectl(cluster, "cp", str(copy), "server:/tmp/copy").returncode == 0
    assert kubectl(cluster, "exec", "server", "--", "cat", "/tmp/copy").stdout == "changed\n"


def test_exec_allocates_a_terminal(cluster: AzureCluster) -> None:
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    script = "test -t 0 && test -t 1 && echo a terminal"
    command = _arguments(cluster, "exec", "-it", "server", "--", "bash", "-c", script)
    started = subprocess.Popen(command, env=cluster.world.environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    assert started.wait(60) == 0
    assert b"a terminal" in os.read(ours, 4096)
    os.close(ours)


def test_port_forward_reaches_a_server(cluster: AzureCluster) -> None:
    with _forwarded(cluster, 8000) as address, httpx.Client(trust_env=False) as http:
        for _ in range(3):
            assert http.get(f"{address}/greeting").text == "hello\n"


def test_port_forward_reports_a_port_without_a_server(cluster: AzureCluster, tmp_path: Path) -> None:
    command, output = _arguments(cluster, "port-forward", "pod/server", ":9999"), tmp_path / "output"
    with output.open("w+") as stream:
        forward = subprocess.Popen(command, env=cluster.world.environment, stdout=stream, stderr=subprocess.STDOUT)
        port = eventually(lambda: _port(output.read_text()), "kubectl listens", 30)
        with httpx.Client(trust_env=False) as http, pytest.raises(httpx.TransportError):
            http.get(f"http://127.0.0.1:{port}")
        error = "error forwarding port 9999 to pod default/server: dial tcp4 127.0.0.1:9999: connect: "
        eventually(lambda: f"{error}connection refused" in output.read_text(), "kubectl reports the error", 30)
        forward.terminate()
        forward.wait(30)


# -- logs --------------------------------------------------------------------------------------------------------------


def test_a_restarted_container_has_a_current_and_a_previous_log(cluster: AzureCluster) -> None:
    mount = {"name": "work", "mountPath": "/work"}
    container = {"name": "main", "image": SERVED_BY, "command": ["bash", "-ec", CRASHES_ONCE], "volumeMounts": [mount]}
    spec = {"containers": [container], "volumes": [{"name": "work", "emptyDir": {}}]}
    cluster.apply("v1", "Pod", "crashing", spec=spec)
    eventually(lambda: kubectl(cluster, "logs", "crashing").stdout == "2\n", "it was restarted", 60)
    assert kubectl(cluster, "logs", "crashing", "--previous").stdout == "1\n"
    assert _log_folders(cluster, "crashing")
    kubectl(cluster, "delete", "pod", "crashing", "--grace-period=1")
    eventually(lambda: not _log_folders(cluster, "crashing"), "its logs are deleted")


def _log_folders(cluster: AzureCluster, pod: str) -> list[Path]:
    return list(cluster.world.home.glob(f"clusters/*/pod-logs/default_{pod}_*"))


@contextlib.contextmanager
def _forwarded(cluster: AzureCluster, port: int) -> Iterator[str]:
    command = _arguments(cluster, "port-forward", "pod/server", f":{port}")
    forward = subprocess.Popen(command, env=cluster.world.environment, stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{_port(forward.stdout.readline() if forward.stdout else '')}"
    finally:
        forward.terminate()
        forward.communicate(timeout=30)


def _port(line: str) -> str:
    found = re.search(r"Forwarding from 127\.0\.0\.1:(\d+)", line)
    return found.group(1) if found else ""
