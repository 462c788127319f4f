"""The simulator's processes: started once, ended to the last, side by side, and back as they were after a kill."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from k8s.objects import has_ended, is_ready
from simulator.kube.client import ApiError, KubeClient
from tests.support.checkout import kill, listening, processes
from tests.support.world import Stack, World, ended, eventually, eventually_equals, job_phase

pytestmark = pytest.mark.simulator
JOB = ("batch.volcano.sh/v1alpha1", "Job", "nccl-allreduce", "ai")


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[World]:
    """A simulator that was never started."""
    world = World(tmp_path / "home")
    yield world
    world.simulator("stop")


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack("processes")
    made.up()
    assert ended(made.kube) == "Completed"
    return made


def daemon_pid(world: World) -> int:
    return int(json.loads((world.home / "daemon.json").read_text())["pid"])


def daemons(world: World) -> list[int]:
    """All that run in this home, also one that nobody knows of."""
    found = []
    for pid in processes(world.home):
        with contextlib.suppress(OSError):  # ended meanwhile
            if "simulator.command.daemon" in Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
                found.append(pid)
    return found


def standing(kube: KubeClient) -> dict[str, tuple[str, bool]]:
    """Nodes, and pods that have not ended, by name: their uid, which makes them the same, and whether ready."""
    try:
        pods = [pod for pod in kube.list("v1", "Pod") if not has_ended(pod)]
        return {
            f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}": (obj["metadata"]["uid"], is_ready(obj))
            for obj in (*kube.list("v1", "Node"), *pods)
        }
    except (ApiError, httpx.HTTPError) as error:  # the API server is still starting
        return {f"{type(error).__name__}: {error}": ("", False)}


def settled(kube: KubeClient) -> dict[str, tuple[str, bool]]:
    """What stands once all of it is ready: a job may end before a daemon that it does not need is."""

    def all_ready() -> dict[str, tuple[str, bool]]:
        now = standing(kube)
        return now if all(ready for _, ready in now.values()) else {}

    found: dict[str, tuple[str, bool]] = eventually(all_ready, "all is ready")
    return found


def test_start_is_idempotent_and_a_restart_changes_no_address(empty: World) -> None:
    empty.simulator("start")
    pid, ports = daemon_pid(empty), (empty.home / "ports.json").read_text()
    token = (empty.home / "arm-token").read_text()
    empty.simulator("start")
    assert daemon_pid(empty) == pid
    empty.simulator("stop")
    assert empty.simulator("status", check=False).returncode == 3
    assert processes(empty.home) == []
    assert not any(listening(port) for port in json.loads(ports).values())
    empty.simulator("stop")
    empty.simulator("start")
    assert ((empty.home / "ports.json").read_text(), (empty.home / "arm-token").read_text()) == (ports, token)


def test_two_starts_at_once_start_one(empty: World) -> None:
    environment = empty.environment
    for file in ("arm-token", "ports.json"):
        (empty.home / file).unlink()
    command = [sys.executable, "-m", "simulator", "start"]
    both = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [each.communicate(timeout=120)[1] for each in both]
    assert [each.returncode for each in both] == [0, 0], said
    eventually(lambda: daemons(empty) == [daemon_pid(empty)], "one daemon runs")
    assert listening(json.loads((empty.home / "ports.json").read_text())["arm"])


def test_two_simulators_side_by_side(world: World, empty: World) -> None:
    empty.simulator("start")
    ours, theirs = (json.loads((w.home / "ports.json").read_text())["arm"] for w in (world, empty))
    assert ours != theirs
    empty.simulator("stop")
    assert processes(empty.home) == []
    assert world.simulator("status").returncode == 0
    assert listening(ours)


@pytest.mark.parametrize("part", ["etcd", "kube-apiserver", "kwok", "kube-scheduler", "vc-scheduler"])
def test_a_killed_part_comes_back_by_itself(stack: Stack, part: str) -> None:
    before = settled(stack.kube)
    killed = processes(stack.world.home, part)
    assert killed
    kill(killed)
    eventually(
        lambda: len(now := processes(stack.world.home, part)) == len(killed) and not set(now) & set(killed),
        f"{part} runs again",
    )
    eventually_equals(partial(standing, stack.kube), before)


@pytest.mark.long
def test_state_survives_a_stop(stack: Stack) -> None:
    world = stack.world
    before = settled(stack.kube)
    ports, kubeconfig = (world.home / "ports.json").read_text(), (world.home / "kubeconfig").read_text()
    world.simulator("stop")
    assert processes(world.home) == []
    world.simulator("start")
    assert (world.home / "ports.json").read_text() == ports
    assert (world.home / "kubeconfig").read_text() == kubeconfig
    eventually_equals(partial(standing, stack.kube), before)
    stack.up("--expect-no-changes")


def begin_job(stack: Stack) -> None:
    """The job anew, after all of the old one is gone, as Pulumi replaces it; returns while it runs.

    Were it deleted in the background, Volcano might never look at its successor of that name (volcano-sh/volcano#3968).
    """
    kube = stack.kube
    job = kube.get(*JOB)
    kube.delete(*JOB, propagation="Foreground")
    eventually(lambda: kube.find(*JOB) is None, "gone")
    metadata = {
        key: job["metadata"][key] for key in ("name", "namespace", "labels", "annotations") if key in job["metadata"]
    }
    kube.create({"apiVersion": job["apiVersion"], "kind": "Job", "metadata": metadata, "spec": job["spec"]})
    eventually(lambda: job_phase(kube) == "Running", "the job runs")


@pytest.mark.long
def test_a_killed_daemon_is_started_again_and_the_running_job_ends_completed(stack: Stack) -> None:
    world = stack.world
    before = settled(stack.kube)
    kubeconfig = (world.home / "kubeconfig").read_text()
    begin_job(stack)
    kill([daemon_pid(world)])
    answer = world.simulator("status", check=False)
    assert "stopped" in answer.stdout
    world.simulator("start")
    assert ended(stack.kube) == "Completed"
    eventually(lambda: before.items() <= standing(stack.kube).items(), "nodes and pods are as before")
    assert (world.home / "kubeconfig").read_text() == kubeconfig
