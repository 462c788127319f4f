from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
import yaml

from components import platform_guard
from k8s.objects import Object
from simulator.azure.schema import schemas
from simulator.host.paths import ROOT
from simulator.kube.client import ApiError
from tests.e2e import evidence
from tests.e2e.runs import check_all_pass, gpu_pod_nodes, observed, run
from tests.support.published_models import unpublished
from tests.support.world import Stack, World, eventually, eventually_equals, gpu_nodes, log, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts]
PLATFORM = "all"
WORKLOADS = tuple(yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]["ai-on-aks:workloads"].split(","))
TYPES = {schema.sdk.token: schema for schema in schemas().values()}
PASSWORD = "open-sesame"
"""The public password of the simulator's stacks."""
MADE_OF = (
    ("v1", "ConfigMap"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Pod"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("batch/v1", "Job"),
    ("batch.volcano.sh/v1alpha1", "Job"),
)


@pytest.fixture(scope="module")
def platform(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    made = Stack.create(world, PLATFORM, tmp_path_factory.mktemp(PLATFORM) / "project", {})
    made.up()
    yield made
    made.destroy()


@contextlib.contextmanager
def consumer_stack(platform: Stack, name: str, folder: Path) -> Iterator[Stack]:
    stack = Stack.create(platform.world, name, folder / name, {"platformStack": PLATFORM}, like=name)
    try:
        stack.up()
        yield stack
    except Exception as error:
        error.add_note(evidence.report(platform.world))  # before the stack is destroyed
        raise
    finally:
        stack.destroy()
        stack.pulumi("stack", "rm", "--yes", name)
    left = names(platform.kube.list("v1", "PersistentVolumeClaim", name))
    assert left == (["jupyterlab"] if name == "jupyterlab" else [])
    if left:
        platform.kube.delete("v1", "Namespace", name)
    eventually(lambda: platform.kube.find("v1", "Namespace", name) is None, f"the namespace {name} is gone")


def standing(platform: Stack, namespace: str) -> dict[str, str]:
    """Omits objects that register consumer stacks."""
    found = {kind: platform.kube.list(*kind, namespace) for kind in MADE_OF}
    return {
        f"{kind} {obj['metadata']['name']}": obj["metadata"]["uid"]
        for (_, kind), objects in found.items()
        for obj in objects
        if not platform_guard.CONSUMER_LABELS.items() <= obj["metadata"].get("labels", {}).items()
    }


def test_all_workloads_of_dev_complete(platform: Stack) -> None:
    check_all_pass(platform, platform)
    assert set(observed(platform, platform)) == set(WORKLOADS)


def test_resources_in_azure_match_azures_published_models(platform: Stack) -> None:
    state = json.loads(platform.pulumi("stack", "export"))["deployment"]["resources"]
    made = [resource for resource in state if resource["type"].startswith("azure-native:")]
    assert made
    for resource in made:
        schema = TYPES[resource["type"]]
        below = resource["id"].split("/", 3)[3]
        body = platform.world.arm("GET", f"{below}?api-version={schema.api_versions[-1]}")
        assert unpublished(schema.type, body) == [], resource["id"]


# -- the notebook ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def forwarded(stack: Stack, workload: str, output: str) -> Iterator[httpx.Client]:
    command = re.sub(r"\d+:(\d+)$", r":\1", stack.workloads()[workload][output])
    environment = stack.world.environment | {"KUBECONFIG": str(stack.world.kubeconfig(stack.name))}
    shell = ["bash", "-c", f"trap 'kill $(jobs -p)' EXIT; {command} & wait"]
    with subprocess.Popen(shell, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as proxy:
        try:
            printed, lines = "", iter(proxy.stdout or ())
            while not (port := re.search(r"Forwarding from 127\.0\.0\.1:(\d+)", printed)):
                printed += next(lines)
            with httpx.Client(base_url=f"http://127.0.0.1:{port[1]}", trust_env=False, timeout=30) as client:
                yield client
        finally:
            proxy.terminate()


def test_the_notebook_needs_its_password(platform: Stack) -> None:
    with forwarded(platform, "jupyterlab", "command") as client:
        assert client.get("/api/contents").status_code == 403
        client.get("/login")
        form = {"password": PASSWORD, "_xsrf": client.cookies["_xsrf"]}
        assert client.post("/login", data=form).status_code == 302
        assert [entry["name"] for entry in client.get("/api/contents").json()["content"]] == ["work"]


# -- changes -----------------------------------------------------------------------------------------------------------


def test_a_second_up_changes_nothing(platform: Stack) -> None:
    assert "unchanged" in platform.up("--expect-no-changes")


@pytest.mark.long
def test_another_model_size_changes_only_metaseqs_job_and_config_map(platform: Stack) -> None:
    platform.set(modelSize="6.7b")
    assert set(platform.steps()) == {
        "kubernetes:batch.volcano.sh/v1alpha1:Job metaseq",
        "kubernetes:core/v1:ConfigMap metaseq",
    }
    check_all_pass(platform, platform)


@pytest.mark.long
@pytest.mark.parametrize("name", ["metaseq", "nccl-allreduce", "nccl-bisection"])
def test_each_job_runs_on_both_nodes_in_its_own_stack(name: str, platform: Stack, tmp_path: Path) -> None:
    with consumer_stack(platform, name, tmp_path) as consumer:
        check_all_pass(consumer, platform)
        assert gpu_pod_nodes(platform, name, namespace=name) == names(gpu_nodes(platform.kube))
        assert "unchanged" in consumer.up("--expect-no-changes")


@pytest.mark.long
def test_olmo_on_two_nodes_resumes_from_checkpoints_after_a_pod_is_deleted(platform: Stack, tmp_path: Path) -> None:
    """Each node's own mount must show the first node's checkpoint in time."""
    with consumer_stack(platform, "olmo", tmp_path) as consumer:
        check_all_pass(consumer, platform)
        assert gpu_pod_nodes(platform, "olmo", namespace="olmo") == names(gpu_nodes(platform.kube))
        assert "unchanged" in consumer.up("--expect-no-changes")
        consumer.pulumi("config", "set", "--path", "workloadOptions.olmo.stopAt", "200")
        consumer.up()
        eventually(lambda: has_resumed(platform), "it has resumed")
        (other,) = olmo_pods(platform, 1)
        platform.kube.delete("v1", "Pod", other, "olmo")
        check_all_pass(consumer, platform)
        last = olmo_logs(platform, 0)[-1]
        assert "Loading checkpoint from /checkpoints/olmo/OLMo-1B/step20-unsharded" in last
        assert "[step=21/" in last
        assert "[step=200/" in last


def olmo_pods(platform: Stack, rank: int) -> list[str]:
    labels = f"batch.kubernetes.io/job-name=olmo,batch.kubernetes.io/job-completion-index={rank}"
    pods = platform.kube.list("v1", "Pod", "olmo", labels=labels)
    pods.sort(key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    return [pod["metadata"]["name"] for pod in pods]


def has_resumed(platform: Stack) -> bool:
    try:
        return any("[step=30/" in text for text in olmo_logs(platform, 0))
    except ApiError:  # its container is being created
        return False


def olmo_logs(platform: Stack, rank: int) -> list[str]:
    return [log(platform.kube, pod, "olmo") for pod in olmo_pods(platform, rank)]


@pytest.mark.long
def test_destroying_a_consumer_stack_affects_neither_another_nor_dev(platform: Stack, tmp_path: Path) -> None:
    with consumer_stack(platform, "jupyterlab", tmp_path) as stays:
        with consumer_stack(platform, "health-check", tmp_path) as goes:
            check_all_pass(goes, platform)
            check_all_pass(stays, platform)
            before = {namespace: standing(platform, namespace) for namespace in ("jupyterlab", "ai")}
        assert {namespace: standing(platform, namespace) for namespace in before} == before
        for other in (stays, platform):
            assert "unchanged" in other.up("--expect-no-changes")
        check_all_pass(stays, platform)
        check_guard(platform, stays.name)


def check_guard(platform: Stack, consumer: str) -> None:
    """Checks that `destroy` fails while a consumer exists, and that a refresh restores a deleted guard."""
    guard = platform_guard.NAME
    refused = " ".join(platform.pulumi("destroy", "--yes", "--skip-preview", check=False).split())
    assert f"stack {consumer} runs on this platform. Destroy that stack first: pulumi destroy -s {consumer}" in refused
    assert "deleted" not in refused
    assert "unchanged" in platform.up("--expect-no-changes")
    platform.kube.delete("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", guard)
    eventually(partial(deleted, platform, guard), "the guard can be deleted without its binding")
    platform.up("--refresh")
    assert platform.kube.find("v1", "ConfigMap", guard, "ai")


def deleted(platform: Stack, guard: str) -> bool:
    with contextlib.suppress(ApiError):
        platform.kube.delete("v1", "ConfigMap", guard, "ai")
    return platform.kube.find("v1", "ConfigMap", guard, "ai") is None


def rerun(platform: Stack, name: str, before: str, nodes: list[str]) -> Object:
    """Returns whether a workload has a new run, how many pods are placed, and nodes outside the given."""
    used = gpu_pod_nodes(platform, name)
    return {"is new": run(platform, name) != before, "pods": len(used), "other nodes": sorted(set(used) - set(nodes))}


@pytest.mark.long
@pytest.mark.parametrize("size", ["Standard_ND96isr_H200_v5", "Standard_ND96asr_v4"])
def test_another_vm_size_reruns_every_workload_on_new_nodes(platform: Stack, size: str) -> None:
    before = {name: run(platform, name) for name in WORKLOADS}
    platform.set(vmSku=size)
    platform.up()
    nodes = gpu_nodes(platform.kube)
    assert {node["metadata"]["labels"]["node.kubernetes.io/instance-type"] for node in nodes} == {size}
    check_all_pass(platform, platform)
    for name in WORKLOADS:
        pods = 2 if name in ("health-check", "nccl-allreduce") else 1
        expected = {"is new": True, "pods": pods, "other nodes": []}
        eventually_equals(partial(rerun, platform, name, before[name], names(nodes)), expected, 60)
