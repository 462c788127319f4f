from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from k8s.objects import has_ended, is_ready
from simulator.kube.client import ApiError, KubeClient
from tests.support.checkout import kill, listening, processes
from tests.support.world import Stack, World, eventually, eventually_equals, job_phase, wait_for_end

pytestmark = pytest.mark.simulator
JOB = ("batch.volcano.sh/v1alpha1", "Job", "nccl-allreduce", "ai")


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "home")
    yield world
    world.simulator("stop")


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack("processes")
    made.up()
    assert wait_for_end(made.kube) == "Completed"
    return made


def daemon_pid(world: World) -> int:
    return int(json.loads((world.home / "daemon.json").read_text())["pid"])


def current(kube: KubeClient) -> dict[str, tuple[str, bool]]:
    try:
        pods = [pod for pod in kube.list("v1", "Pod") if not has_ended(pod)]
        return {
            f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}": (obj["metadata"]["uid"], is_ready(obj))
            for obj in (*kube.list("v1", "Node"), *pods)
        }
    except (ApiError, httpx.HTTPError) as error:  # the API server is starting
        return {f"{type(error).__name__}: {error}": ("", False)}


def wait_until_ready(kube: KubeClient) -> dict[str, tuple[str, bool]]:
    def all_ready() -> dict[str, tuple[str, bool]]:
        now = current(kube)
        return now if all(ready for _, ready in now.values()) else {}

    found: dict[str, tuple[str, bool]] = eventually(all_ready, "all is ready")
    return found


def test_start_is_idempotent_and_a_restart_keeps_addresses(empty: World) -> None:
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


def test_two_simulators_side_by_side(world: World, empty: World) -> None:
    empty.simulator("start")
    ours, theirs = (json.loads((w.home / "ports.json").read_text())["arm"] for w in (world, empty))
    assert ours != theirs
    empty.simulator("stop")
    assert processes(empty.home) == []
    assert world.simulator("status").returncode == 0
    assert listening(ours)


@pytest.mark.parametrize("part", ["etcd", "kube-apiserver", "kwok", "kube-scheduler", "vc-scheduler"])
def test_a_killed_process_is_restarted(stack: Stack, part: str) -> None:
    before = wait_until_ready(stack.kube)
    killed = processes(stack.world.home, part)
    assert killed
    kill(killed)
    eventually(
        lambda: len(now := processes(stack.world.home, part)) == len(killed) and not set(now) & set(killed),
        f"{part} runs again",
    )
    eventually_equals(partial(current, stack.kube), before)


@pytest.mark.long
def test_state_survives_a_stop(stack: Stack) -> None:
    world = stack.world
    before = wait_until_ready(stack.kube)
    ports, kubeconfig = (world.home / "ports.json").read_text(), (world.home / "kubeconfig").read_text()
    world.simulator("stop")
    assert processes(world.home) == []
    world.simulator("start")
    assert (world.home / "ports.json").read_text() == ports
    assert (world.home / "kubeconfig").read_text() == kubeconfig
    eventually_equals(partial(current, stack.kube), before)
    stack.up("--expect-no-changes")


def begin_job(stack: Stack) -> None:
    """Replaces the job like Pulumi, and returns once it runs.

    Deletes it in the foreground: otherwise Volcano may ignore the new job (volcano-sh/volcano#3968).
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
def test_a_running_job_completes_after_the_daemon_is_killed_and_started_again(stack: Stack) -> None:
    world = stack.world
    before = wait_until_ready(stack.kube)
    kubeconfig = (world.home / "kubeconfig").read_text()
    begin_job(stack)
    kill([daemon_pid(world)])
    answer = world.simulator("status", check=False)
    assert "stopped" in answer.stdout
    world.simulator("start")
    assert wait_for_end(stack.kube) == "Completed"
    eventually(lambda: before.items() <= current(stack.kube).items(), "nodes and pods are as before")
    assert (world.home / "kubeconfig").read_text() == kubeconfig
