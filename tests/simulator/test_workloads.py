"""Every workload: in dev, where they queue for its nodes, and each in a stack of its own. One story, in this order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator import jobs
from tests.azure.published_models import MODELS, unpublished
from tests.simulator.world import Stack, World, eventually, gpu_nodes, log

pytestmark = pytest.mark.simulator
PLATFORM = "all"
WORKLOADS = ("health-check", "jupyterlab", "metaseq", "nccl-allreduce", "olmo")
RESOURCE_TYPES = {
    "azure-native:authorization:RoleAssignment": "Microsoft.Authorization/roleAssignments",
    "azure-native:containerregistry:Registry": "Microsoft.ContainerRegistry/registries",
    "azure-native:containerservice:AgentPool": "Microsoft.ContainerService/managedClusters/agentPools",
    "azure-native:containerservice:ManagedCluster": "Microsoft.ContainerService/managedClusters",
    "azure-native:resources:ResourceGroup": "Microsoft.Resources/resourceGroups",
    "azure-native:storage:BlobContainer": "Microsoft.Storage/storageAccounts/blobServices/containers",
    "azure-native:storage:StorageAccount": "Microsoft.Storage/storageAccounts",
}
DONE = {
    "health-check": "Complete",
    "jupyterlab": "Available",
    "metaseq": "Completed",
    "nccl-allreduce": "Completed",
} | {"olmo": "Complete"}


@pytest.fixture(scope="module")
def platform(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The committed dev stack under another name."""
    made = Stack.create(world, PLATFORM, tmp_path_factory.mktemp(PLATFORM) / "project", {})
    made.up()
    yield made
    made.destroy()


@pytest.fixture
def lodger(world: World, platform: Stack, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stack]:
    """The committed stack of one workload, on that platform."""
    name = request.param
    stack = Stack.create(world, name, tmp_path / "project", {"platformStack": PLATFORM}, like=name)
    yield stack
    stack.destroy()
    assert platform.kube.find("v1", "Namespace", name) is None


def observed(stack: Stack, platform: Stack) -> dict[str, jobs.Workload]:
    ran = stack.world.home / "clusters" / f"ai-on-aks-{PLATFORM}-ai-on-aks-{PLATFORM}" / "placements.json"
    found = jobs.observe(platform.kube, stack.outputs()["workloads"], ran)
    return {workload.name: jobs.judged(platform.kube, workload) for workload in found}


def ended(stack: Stack, platform: Stack) -> dict[str, jobs.Workload]:
    """All workloads once each is done, or has failed."""

    def all_done() -> dict[str, jobs.Workload]:
        found = observed(stack, platform)
        return found if all(each.failed or each.phase == DONE[each.name] for each in found.values()) else {}

    found: dict[str, jobs.Workload] = eventually(all_done, "all workloads are done", 400)
    return found


def all_pass(stack: Stack, platform: Stack) -> None:
    found = ended(stack, platform)
    assert {name: each.phase for name, each in found.items()} == {name: DONE[name] for name in found}
    for name in {"health-check", "nccl-allreduce"} & set(found):
        assert found[name].verdicts, found[name]
        assert all(verdict.startswith("VERDICT: PASS") for verdict in found[name].verdicts), found[name]


def test_all_workloads_of_dev_come_to_their_end(platform: Stack) -> None:
    all_pass(platform, platform)
    assert set(observed(platform, platform)) == set(WORKLOADS)


def test_trainings_say_how_fast_they_are(platform: Stack) -> None:
    assert "MFU" in log(platform.kube, "metaseq-mpimaster-0")
    (olmo,) = [pod for pod in observed(platform, platform)["olmo"].ran_on if pod[0].startswith("olmo-0")]
    assert "MFU" in log(platform.kube, olmo[0])


def test_what_up_leaves_in_azure_is_as_azure_publishes_it(platform: Stack) -> None:
    state = json.loads(platform.pulumi("stack", "export"))["deployment"]["resources"]
    found = {resource["type"] for resource in state if resource["type"].startswith("azure-native:")}
    assert found == set(RESOURCE_TYPES)
    for resource in (resource for resource in state if resource["type"] in RESOURCE_TYPES):
        kind = RESOURCE_TYPES[resource["type"]]
        below = resource["id"].split("/", 3)[3]
        body = platform.world.arm("GET", f"{below}?api-version={MODELS[kind][0]}")
        assert unpublished(kind, body) == [], resource["id"]


def test_a_second_up_changes_nothing(platform: Stack) -> None:
    assert "unchanged" in platform.up("--expect-no-changes")


def test_another_model_size_changes_metaseqs_job_and_config_map_and_nothing_else(platform: Stack) -> None:
    platform.set(modelSize="6.7b")
    assert set(platform.steps()) == {
        "kubernetes:batch.volcano.sh/v1alpha1:Job metaseq",
        "kubernetes:core/v1:ConfigMap metaseq",
    }
    all_pass(platform, platform)


@pytest.mark.parametrize("lodger", WORKLOADS, indirect=True)
def test_each_runs_in_a_stack_of_its_own_and_goes_without_a_trace(lodger: Stack, platform: Stack) -> None:
    lodger.up()
    all_pass(lodger, platform)
    assert "unchanged" in lodger.up("--expect-no-changes")


def test_the_platform_did_not_notice(platform: Stack) -> None:
    assert "unchanged" in platform.up("--expect-no-changes")


@pytest.mark.parametrize("size", ["Standard_ND96isr_H200_v5", "Standard_ND96asr_v4"])
def test_another_vm_size_retargets_every_workload(platform: Stack, size: str) -> None:
    platform.set(vmSku=size)
    platform.up()
    nodes = gpu_nodes(platform.kube)
    assert {node["metadata"]["labels"]["node.kubernetes.io/instance-type"] for node in nodes} == {size}
    all_pass(platform, platform)
    assert {node for each in observed(platform, platform).values() for _, node in each.ran_on} & {
        node["metadata"]["name"] for node in nodes
    }
