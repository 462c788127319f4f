from __future__ import annotations

from typing import Any

import pytest

from simulator.bench import deployment
from simulator.bench.durations import durations
from simulator.bench.schedule import Slot, Work, schedule
from tests.support import golden, timeline

CLUSTER = "urn:pulumi:dev::ai-on-aks::a$azure-native:containerservice:ManagedCluster::cluster"
POLICY = "urn:pulumi:dev::ai-on-aks::a$kubernetes:mellanox.com/v1alpha1:NicClusterPolicy::nic-cluster-policy"
GPU_OPERATOR = "urn:pulumi:dev::ai-on-aks::a$kubernetes:helm.sh/v3:Release::gpu-operator"
POOL = "urn:pulumi:dev::ai-on-aks::a$azure-native:containerservice:AgentPool::pool-gpu"
RELEASE = "urn:pulumi:dev::ai-on-aks::a$kubernetes:helm.sh/v3:Release::node-feature-discovery"
PROVIDER = "urn:pulumi:dev::ai-on-aks::a$pulumi:providers:kubernetes::kubernetes"
JOB = "urn:pulumi:dev::ai-on-aks::kubernetes:batch.volcano.sh/v1alpha1:Job::nccl-allreduce"


def export(*resources: dict[str, Any]) -> dict[str, Any]:
    defaults = {"custom": True, "dependencies": [], "provider": ""}
    kinds = [{"type": found["urn"].split("::")[2].rpartition("$")[2]} for found in resources]
    return {
        "deployment": {
            "resources": [{**defaults, **kind, **found} for kind, found in zip(kinds, resources, strict=True)]
        }
    }


def small() -> dict[str, Any]:
    return export(
        {"urn": CLUSTER, "inputs": {"resourceGroupName": "rg", "resourceName": "aks"}},
        {"urn": POOL, "dependencies": [CLUSTER]},
        {"urn": PROVIDER, "dependencies": [CLUSTER], "inputs": {"kubeconfig": "old"}},
        {"urn": RELEASE, "provider": f"{PROVIDER}::some-id"},
        {"urn": JOB, "provider": f"{PROVIDER}::some-id", "dependencies": [RELEASE]},
    )


def test_schedules_work_early_and_marks_the_longest_chain() -> None:
    works = [
        Work("a", 3),
        Work("b", 5),
        Work("c", 1, frozenset({"a", "b"})),
        Work("d", 9, frozenset({"a"})),
    ]
    assert schedule(works, "c") == [
        Slot("a", 0, 3),
        Slot("b", 0, 5, critical=True),
        Slot("d", 3, 12),
        Slot("c", 5, 6, critical=True),
    ]


def test_resources_wait_for_their_provider_and_events_for_resources() -> None:
    slots = {slot.name: slot for slot in schedule(deployment.works(small(), durations()), durations().goal)}
    cluster = slots["azure-native:containerservice:ManagedCluster cluster"]
    assert slots["kubernetes:helm.sh/v3:Release node-feature-discovery"].start == cluster.end
    assert slots["node labels"].start == slots["azure-native:containerservice:AgentPool pool-gpu"].end
    assert slots["NCCL run"].critical


def test_a_job_runs_once_the_gpu_driver_is_ready() -> None:
    resources = [
        *small()["deployment"]["resources"],
        {"urn": POLICY, "provider": f"{PROVIDER}::some-id", "custom": True},
        {"urn": GPU_OPERATOR, "provider": f"{PROVIDER}::some-id", "dependencies": [POLICY], "custom": True},
    ]
    slots = schedule(deployment.works({"deployment": {"resources": resources}}, durations()), durations().goal)
    by_name = {slot.name: slot for slot in slots}
    job, driver = by_name["kubernetes:batch.volcano.sh/v1alpha1:Job nccl-allreduce"], by_name["GPU driver"]
    assert job.end < driver.start
    assert by_name["NCCL run"].start == driver.end
    chain = [slot.name.rpartition(":")[2] for slot in slots if slot.critical]
    assert chain == [
        "ManagedCluster cluster", "AgentPool pool-gpu", "node labels", "OFED driver", "GPU driver", "NCCL run"
    ]  # fmt: skip


@pytest.mark.parametrize("stack", golden.NAMES)
def test_every_resource_of_every_golden_stack_has_a_duration(stack: str) -> None:
    resources = golden.reviewed(stack)
    assert resources
    for resource in resources:
        if ":" in resource and not resource.startswith("ai-on-aks:"):
            assert durations().step_of(resource) in durations().steps


def test_the_readmes_picture_is_of_the_program_as_it_is() -> None:
    assert timeline.FILE.read_text("utf-8") == timeline.drawn(), "meant? then run: python -m tests.support.timeline"
