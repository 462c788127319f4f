"""A consumer stack that loses its node, and then its platform: what diagnosis and `make down` print and do.

One story, told in the order of the file; each `down` stops the simulator, and it is started again.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from k8s.objects import Object
from simulator.host.paths import ROOT
from tests.support.world import Stack, World, eventually, gpu_nodes, job_phase, names

pytestmark = [pytest.mark.simulator, pytest.mark.long]
NAME, VISITOR, PLATFORM = "jupyterlab", "nccl-allreduce", "ground"
STARTS_S = 400
"""Within it a node has its drivers, and the server runs."""


@pytest.fixture(scope="module")
def platform(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack(PLATFORM, workloads="", nodeCount=1)
    made.up()
    return made


@pytest.fixture(scope="module")
def consumer(platform: Stack, world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp(NAME) / "project"
    made = Stack.create(world, NAME, folder, {"platformStack": PLATFORM}, like=NAME)
    made.up()
    yield made
    made.pulumi("stack", "rm", "--yes", "--force", NAME)


def running(platform: Stack, namespace: str = NAME) -> Object:
    """Its pod, once it runs."""
    pods = platform.kube.list("v1", "Pod", namespace)
    return next((pod for pod in pods if pod["status"].get("phase") == "Running"), {})


def down(stack: Stack) -> subprocess.Popen[str]:
    """`make down STACK=...`, under way."""
    command = [sys.executable, "-m", "simulator", "down"]
    environment = stack.world.environment | {"STACK": stack.name}
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_diagnosis_tells_of_a_pod_whose_node_is_silent_and_until_when_it_stays(
    platform: Stack, consumer: Stack
) -> None:
    pod = eventually(lambda: running(platform), "the server runs", STARTS_S, every=1)
    node = pod["spec"]["nodeName"]
    platform.world.simulator("fault", "node", "--node", node)
    silent = f"pod {pod['metadata']['name']} is Running on node {node}, which is silent since"
    until = "Unless it is back 300 s after its taint, at "  # which comes after the silence

    def told() -> bool:
        said = platform.why(NAME, namespace=consumer.name)
        return silent in said and until in said

    eventually(told, "it is told", 180, every=2)


def test_down_says_which_pod_it_waits_for_and_goes_on_when_the_node_is_back(platform: Stack, tmp_path: Path) -> None:
    """A pod in a namespace that is deleted, as that of a stack without files is."""
    platform.world.simulator("heal")
    config = {"platformStack": PLATFORM, "workloadOptions": {VISITOR: {"numNodes": 1}}}
    visitor = Stack.create(platform.world, VISITOR, tmp_path / "project", config, like=VISITOR)
    visitor.up()
    eventually(lambda: job_phase(platform.kube, VISITOR, visitor.name) == "Completed", "its own pods end", STARTS_S)
    name, (node,) = "sleeper", names(gpu_nodes(platform.kube))
    command = {"name": "main", "image": "alpine", "command": ["sleep", "3600"]}
    spec = {"containers": [command], "nodeName": node, "tolerations": [{"operator": "Exists"}]}
    metadata = {"name": name, "namespace": visitor.name}
    platform.kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    eventually(lambda: running(platform, visitor.name).get("metadata", {}).get("name") == name, "it runs", STARTS_S)
    platform.world.simulator("fault", "node", "--node", node)
    said, going = "", down(visitor)
    for line in going.stdout or ():
        said += line
        if f"do: kubectl delete pod -n {visitor.name} {name} --force" in line:
            break
    try:
        assert "is Terminating on node" in " ".join(said.split())
    finally:
        platform.world.simulator("heal")
        rest, _ = going.communicate()
        platform.world.simulator("start")
    assert going.returncode == 0, rest
    visitor.pulumi("stack", "rm", "--yes", VISITOR)  # another story of this worker may have a stack of that name


def test_down_forgets_what_was_in_a_cluster_that_azure_has_no_more(platform: Stack, consumer: Stack) -> None:
    consumer.up()
    consumer.world.arm("DELETE", f"resourceGroups/ai-on-aks-{PLATFORM}?api-version=2024-03-01")
    by_hand = consumer.pulumi("destroy", "--yes", "--skip-preview", check=False)
    assert "PULUMI_K8S_DELETE_UNREACHABLE" in by_hand, "the plugin says how to do it by hand"
    going = down(consumer)
    said, _ = going.communicate()
    consumer.world.simulator("start")
    assert going.returncode == 0, said
    assert "is gone from Azure: what it had there is taken out of its state" in said
    assert consumer.pulumi("stack", "export").count('"urn"') == 0
