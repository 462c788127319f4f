"""Kueue's configuration, and what it is told of teams: quotas, queues, rights."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from config.facts.allocatable import allocatable
from config.facts.scheduling import GPU_TAINT, SPOT_TAINT, TEAM_LABELS
from config.facts.skus import sku
from config.schema.operators import MAX_WARM_UP
from config.schema.pools import PoolSettings
from config.schema.teams import TeamSettings
from operators import kueue
from operators.kueue import queues, rights

H100, T4 = "Standard_ND96isr_H100_v5", "Standard_NC4as_T4_v3"
RDMA = "nvidia.com/mlnxnics"
WHOLE = PoolSettings(vm_sku=H100)


def quotas(gpus: int, *pools: PoolSettings) -> dict[str, str]:
    return queues.quotas(gpus, pools, RDMA)


def amount(text: str) -> int:
    """Thousandths of CPUs, and KiB."""
    units = {"m": 1, "Ki": 1, "Mi": 1024, "Gi": 1024**2}
    unit = text.lstrip("0123456789")
    return int(text.removesuffix(unit)) * units.get(unit, 1000)


def test_its_manager_is_among_the_last_to_be_evicted() -> None:
    assert kueue.values()["controllerManager"]["manager"]["priorityClassName"] == "system-cluster-critical"


def test_in_the_namespaces_of_teams_no_job_goes_past_the_queue_and_elsewhere_none_is_touched() -> None:
    found = yaml.safe_load(kueue.values()["managerConfig"]["controllerManagerConfigYaml"])
    assert found["manageJobsWithoutQueueName"] is True
    assert found["managedJobsNamespaceSelector"] == {"matchLabels": TEAM_LABELS}
    assert set(found["integrations"]["frameworks"]) >= {
        "batch/job",
        "kubeflow.org/pytorchjob",
        "ray.io/rayjob",
        "workload.codeflare.dev/appwrapper",
    }


def test_a_job_may_ask_for_room_on_its_nodes_disk_which_no_quota_counts() -> None:
    """Kueue admits no job that asks for a resource without a quota, unless it is told to pass over that one."""
    passed_over = tuple(kueue.configuration(30)["resources"]["excludeResourcePrefixes"])
    counted = quotas(8, WHOLE)
    assert "ephemeral-storage".startswith(passed_over)
    assert not [name for name in (*counted, "nvidia.com/gpu.shared", "rdma/ib") if name.startswith(passed_over)]


def test_kueue_waits_longer_for_pods_than_appwrapper_does() -> None:
    waits = kueue.configuration(90)["waitForPodsReady"]
    assert int(waits["timeout"].removesuffix("m")) > 90


def test_only_appwrapper_restarts_jobs_that_were_ready() -> None:
    """Kueue disables the check for a recovery timeout of 0 (0.19.2, pkg/controller/core/core.go, waitForPodsReady)."""
    assert kueue.configuration(30)["waitForPodsReady"]["recoveryTimeout"] == "0s"


@pytest.mark.parametrize("warm_up", [1, 30, 90, MAX_WARM_UP])
def test_a_job_whose_pods_are_never_ready_is_tried_for_a_day(warm_up: int) -> None:
    waits = kueue.configuration(warm_up)["waitForPodsReady"]
    timeout, requeuing = int(waits["timeout"].removesuffix("m")) * 60, waits["requeuingStrategy"]
    limit = requeuing["backoffLimitCount"]
    pauses = [min(requeuing["backoffBaseSeconds"] * 2**n, requeuing["backoffMaxSeconds"]) for n in range(limit)]
    assert (limit + 1) * timeout + sum(pauses) >= 24 * 3600
    assert (limit - 4) * (timeout + max(pauses)) < 24 * 3600, "a job that never starts blocks GPUs for no longer"


def test_the_manager_has_memory_for_all_pods_of_a_cluster() -> None:
    assert kueue.values()["controllerManager"]["manager"]["resources"] == {"limits": {"memory": "2Gi"}}


def test_a_team_of_whole_nodes_has_all_that_they_offer() -> None:
    left = allocatable(sku(H100))
    assert quotas(8, WHOLE) == {
        "cpu": f"{left.cpu_millis}m",
        "memory": quotas(8, WHOLE)["memory"],
        "nvidia.com/gpu": "8",
        RDMA: "8",
        "pods": "250",
    }
    assert amount(quotas(8, WHOLE)["memory"]) == left.memory_kib
    assert amount(quotas(16, WHOLE)["memory"]) == 2 * left.memory_kib


def test_pods_of_a_quota_are_those_of_the_nodes() -> None:
    few = quotas(8, PoolSettings(vm_sku=H100, max_pods=100))
    assert few["pods"] == "100"
    assert amount(few["memory"]) == allocatable(sku(H100), 100).memory_kib > amount(quotas(8, WHOLE)["memory"])


def test_a_share_is_rounded_up_so_that_parts_of_devices_are_not_lost() -> None:
    sliced = PoolSettings(vm_sku=H100, gpu_slices=4)
    assert quotas(1, sliced)[RDMA] == "1"
    assert quotas(32, sliced)[RDMA] == "8"


def test_a_job_of_a_whole_node_fits_a_team_of_its_gpus_in_any_pool() -> None:
    both = quotas(8, WHOLE, PoolSettings(vm_sku=T4))
    for pool in (WHOLE, PoolSettings(vm_sku=T4)):
        left = allocatable(pool.sku)
        assert amount(both["cpu"]) >= left.cpu_millis
        assert amount(both["memory"]) >= left.memory_kib


def test_a_cluster_without_infiniband_counts_none() -> None:
    assert RDMA not in quotas(8, PoolSettings(vm_sku=T4))


@pytest.mark.parametrize(("gpus", "cpu"), [(0, "0"), (200, "2373500m"), (400, "4747")])
def test_amounts_are_written_as_the_api_server_does(gpus: int, cpu: str) -> None:
    assert quotas(gpus, WHOLE)["cpu"] == cpu


def test_a_team_borrows_what_others_leave_and_gives_it_back() -> None:
    """As in seed 004, in the words of v1beta2."""
    spec = queues.cluster_queue_spec(quotas(8, WHOLE), "blue")
    assert spec["cohortName"] == "default-cohort"
    assert spec["preemption"] == {
        "withinClusterQueue": "LowerOrNewerEqualPriority",
        "reclaimWithinCohort": "Any",
        "borrowWithinCohort": {"policy": "Never"},
    }
    (group,) = spec["resourceGroups"]
    assert group["coveredResources"] == ["cpu", "memory", "nvidia.com/gpu", RDMA, "pods"]
    (flavor,) = group["flavors"]
    assert flavor["name"] == "default-flavor"
    assert [each["name"] for each in flavor["resources"]] == group["coveredResources"]


def test_limits_of_lending_and_borrowing_hold_for_the_share_of_all_else_too() -> None:
    team = TeamSettings(gpus=16, lending_limit=8, borrowing_limit=0)
    spec = queues.team_queue_spec("blue", team, [WHOLE], RDMA)
    found = {each["name"]: each for each in spec["resourceGroups"][0]["flavors"][0]["resources"]}
    for key, gpus in (("nominalQuota", 16), ("lendingLimit", 8), ("borrowingLimit", 0)):
        assert {name: each[key] for name, each in found.items()} == quotas(gpus, WHOLE)


def test_a_team_lends_and_borrows_without_limit_unless_it_says_one() -> None:
    spec = queues.team_queue_spec("blue", TeamSettings(gpus=16), [WHOLE], RDMA)
    for each in spec["resourceGroups"][0]["flavors"][0]["resources"]:
        assert set(each) == {"name", "nominalQuota"}


def test_only_the_teams_own_namespace_queues_for_its_quota_and_none_for_what_no_team_has() -> None:
    own = queues.cluster_queue_spec(quotas(8, WHOLE), "blue")["namespaceSelector"]
    assert own == {"matchLabels": {"kubernetes.io/metadata.name": "blue"}}
    assert "namespaceSelector" not in queues.cluster_queue_spec(quotas(8, WHOLE), None)


def test_jobs_go_to_gpu_nodes_and_to_spot_nodes_only_if_they_say_so() -> None:
    spec = queues.flavor_spec([WHOLE, PoolSettings(vm_sku=T4, spot=True, taints=("team=x:NoExecute",))])
    assert spec["nodeLabels"] == {"ai-on-aks/gpu": "true"}
    tolerated = {f"{each['key']}={each['value']}:{each['effect']}" for each in spec["tolerations"]}
    assert tolerated == {GPU_TAINT, "team=x:NoExecute"}
    assert SPOT_TAINT not in tolerated


def test_blocks_of_nodes_are_those_that_the_node_labeler_tells_and_kueue_counts_by_node() -> None:
    labels = [each["nodeLabel"] for each in queues.topology_spec()["levels"]]
    assert labels == ["ai-on-aks/ib-pkey", "kubernetes.io/hostname"]


def test_quotas_are_of_one_flavor_and_only_that_of_blocks_has_a_topology() -> None:
    plain, blocks = queues.flavor_spec([WHOLE]), queues.flavor_spec([WHOLE], topology=True)
    assert "topologyName" not in plain
    assert blocks == {**plain, "topologyName": queues.TOPOLOGY}
    name = queues.flavor_name(blocks)
    spec = queues.team_queue_spec("blue", TeamSettings(gpus=8), [WHOLE], RDMA, name)
    (flavor,) = spec["resourceGroups"][0]["flavors"]
    assert flavor["name"] == name != queues.flavor_name(plain) == "default-flavor"


def test_other_taints_of_pools_give_a_flavor_with_a_topology_another_name_and_a_plain_one_none() -> None:
    """Kueue would refuse to change the tolerations of the one that is there."""
    tainted = PoolSettings(vm_sku=H100, taints=(GPU_TAINT, "team=x:NoExecute"))
    blocks = {queues.flavor_name(queues.flavor_spec([pool], topology=True)) for pool in (WHOLE, tainted)}
    assert len(blocks) == 2
    assert all(name.startswith(queues.TOPOLOGY_FLAVOR) for name in blocks)
    assert {queues.flavor_name(queues.flavor_spec([pool])) for pool in (WHOLE, tainted)} == {queues.FLAVOR}
    assert queues.flavor_name(queues.flavor_spec([WHOLE, WHOLE], topology=True)) in blocks


def may(verb: str, group: str, resource: str) -> bool:
    """By the rules of the role that members have in their namespace."""
    return any(
        group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"]
        for rule in rights.rules()
    )


@pytest.mark.parametrize("framework", rights.FRAMEWORKS)
def test_members_make_jobs_of_every_kind_that_is_queued(framework: str) -> None:
    assert framework in kueue.configuration(30)["integrations"]["frameworks"]
    assert may("create", framework.partition("/")[0], rights.FRAMEWORKS[framework])


@pytest.mark.parametrize(
    ("group", "resource"),
    [("", "pods"), ("apps", "deployments"), ("apps", "statefulsets"), ("apps", "daemonsets"), ("batch", "cronjobs")],
)
def test_members_make_no_pods_past_the_queue(group: str, resource: str) -> None:
    assert not may("create", group, resource)
    assert not may("patch", group, resource)


@pytest.mark.parametrize("verb", ["create", "patch", "update", "delete", "impersonate", "bind", "escalate"])
@pytest.mark.parametrize(
    ("group", "resource"),
    [
        ("kueue.x-k8s.io", "localqueues"),
        ("kueue.x-k8s.io", "workloads"),
        ("rbac.authorization.k8s.io", "rolebindings"),
        ("", "serviceaccounts"),
        ("", "resourcequotas"),
    ],
)
def test_members_cannot_give_themselves_more(verb: str, group: str, resource: str) -> None:
    assert not may(verb, group, resource)


def test_users_and_groups_of_a_team_have_the_role() -> None:
    """Kubernetes compares names letter by letter, and Entra's tokens have ids in lower case."""
    group = "0a0b0c0d-0000-0000-0000-000000000000"
    found: dict[str, Any] = rights.binding(TeamSettings(gpus=8, users=("alice",), groups=(group.upper(),)))
    assert found["role_ref"]["name"] == "mlbatch-edit"
    assert [(each["kind"], each["name"]) for each in found["subjects"]] == [("User", "alice"), ("Group", group)]
