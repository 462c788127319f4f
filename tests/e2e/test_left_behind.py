"""A consumer stack loses its node, and then its platform.

Each `down` stops the simulator, which is then restarted.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from k8s.objects import Object
from simulator.host.paths import ROOT
from tests.support.manifests import manifest
from tests.support.world import Stack, eventually, gpu_nodes, job_phase, names

pytestmark = [pytest.mark.simulator, pytest.mark.long]
NAME, SECOND, PLATFORM = "jupyterlab", "nccl-allreduce", "platform"
STARTS_S = 400


@pytest.fixture(scope="module")
def platform(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack(PLATFORM, workloads="", nodeCount=1)
    made.up()
    return made


@pytest.fixture(scope="module")
def consumer(platform: Stack, new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack(NAME, NAME, platformStack=platform.name)
    made.up()
    return made


def running(platform: Stack, namespace: str = NAME) -> Object:
    pods = platform.kube.list("v1", "Pod", namespace)
    return next((pod for pod in pods if pod["status"].get("phase") == "Running"), {})


def down(stack: Stack) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "simulator", "down"]
    environment = stack.world.environment | {"STACK": stack.name}
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_diagnosis_reports_a_pod_on_a_lost_node(platform: Stack, consumer: Stack) -> None:
    pod = eventually(lambda: running(platform), "the server runs", STARTS_S, every=1)
    node = pod["spec"]["nodeName"]
    platform.world.simulator("fault", "node", "--node", node)
    silent = f"pod {pod['metadata']['name']} is Running on node {node} (unreachable since"
    until = "within 300 s of its taint (at "  # the taint comes later than the silence

    def reported() -> bool:
        report = platform.diagnose(NAME, namespace=consumer.name)
        return silent in report and until in report

    eventually(reported, "the lost node is reported", 180, every=2)


def test_down_reports_the_pod_it_waits_for_and_continues_when_the_node_is_back(
    platform: Stack, new_stack: Callable[..., Stack]
) -> None:
    """Waits for a pod in the stack's namespace, which `down` deletes because it has no files."""
    platform.world.simulator("heal")
    stack = new_stack(SECOND, SECOND, platformStack=PLATFORM, workloadOptions={SECOND: {"numNodes": 1}})
    stack.up()
    eventually(lambda: job_phase(platform.kube, SECOND, stack.name) == "Completed", "the job's pods end", STARTS_S)
    name, (node,) = "sleeper", names(gpu_nodes(platform.kube))
    command = {"name": "main", "image": "alpine", "command": ["sleep", "3600"]}
    spec = {"containers": [command], "nodeName": node, "tolerations": [{"operator": "Exists"}]}
    platform.kube.create(manifest("v1", "Pod", name, stack.name, spec=spec))
    eventually(lambda: running(platform, stack.name).get("metadata", {}).get("name") == name, "it runs", STARTS_S)
    platform.world.simulator("fault", "node", "--node", node)
    output, process = "", down(stack)
    for line in process.stdout or ():
        output += line
        if f"do: kubectl delete pod -n {stack.name} {name} --force" in line:
            break
    try:
        assert "is Terminating on node" in " ".join(output.split())
    finally:
        platform.world.simulator("heal")
        rest, _ = process.communicate()
        platform.world.simulator("start")
    assert process.returncode == 0, rest


def test_down_removes_objects_of_a_deleted_cluster_from_the_state(platform: Stack, consumer: Stack) -> None:
    consumer.up()
    consumer.world.arm("DELETE", f"resourceGroups/ai-on-aks-{PLATFORM}?api-version=2024-03-01")
    by_hand = consumer.pulumi("destroy", "--yes", "--skip-preview", check=False)
    assert "PULUMI_K8S_DELETE_UNREACHABLE" in by_hand, "the plugin's way without `make down`"
    process = down(consumer)
    output, _ = process.communicate()
    consumer.world.simulator("start")
    assert process.returncode == 0, output
    assert "no longer exists in Azure: objects in the cluster are removed from the state" in output
    assert consumer.pulumi("stack", "export").count('"urn"') == 0
