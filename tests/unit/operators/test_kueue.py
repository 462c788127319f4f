from __future__ import annotations

from typing import Any

import pytest

from config.data.allocatable import allocatable
from config.data.scheduling import GPU_TAINT, SPOT_TAINT
from config.data.skus import sku
from config.schema.operators import MAX_WARM_UP
from config.schema.pools import PoolSettings
from config.schema.teams import TeamSettings
from operators import kueue
from operators.kueue import queues, rights
from tests.support.pools import RDMA
from tests.support.sizes import H100, T4

H100_POOL = PoolSettings(vm_sku=H100)


def quotas(gpus: int, *pools: PoolSettings) -> dict[str, str]:
    return queues.quotas(gpus, pools, RDMA)


def amount(text: str) -> int:
    """Parses thousandths of CPUs, or KiB."""
    units = {"m": 1, "Ki": 1, "Mi": 1024, "Gi": 1024**2}
    unit = text.lstrip("0123456789")
    return int(text.removesuffix(unit)) * units.get(unit, 1000)


def test_ignores_ephemeral_storage_and_no_counted_resource() -> None:
    """Kueue never admits a job that requests a resource without quota, unless it ignores the resource."""
    passed_over = tuple(kueue.configuration(30)["resources"]["excludeResourcePrefixes"])
    counted = quotas(8, H100_POOL)
    assert "ephemeral-storage".startswith(passed_over)
    assert not [name for name in (*counted, "nvidia.com/gpu.shared", "rdma/ib") if name.startswith(passed_over)]


@pytest.mark.parametrize("warm_up", [1, 30, 90, MAX_WARM_UP])
def test_retries_a_job_with_unready_pods_for_a_day(warm_up: int) -> None:
    waits = kueue.configuration(warm_up)["waitForPodsReady"]
    timeout, requeuing = int(waits["timeout"].removesuffix("m")) * 60, waits["requeuingStrategy"]
    assert timeout > warm_up * 60, "AppWrapper waits as long"
    limit = requeuing["backoffLimitCount"]
    pauses = [min(requeuing["backoffBaseSeconds"] * 2**n, requeuing["backoffMaxSeconds"]) for n in range(limit)]
    assert (limit + 1) * timeout + sum(pauses) >= 24 * 3600
    assert (limit - 4) * (timeout + max(pauses)) < 24 * 3600, "then it stops blocking GPUs"


def test_a_quota_of_whole_nodes_has_all_their_resources() -> None:
    left = allocatable(sku(H100))
    assert quotas(8, H100_POOL) == {
        "cpu": f"{left.cpu_millis}m",
        "memory": quotas(8, H100_POOL)["memory"],
        "nvidia.com/gpu": "8",
        RDMA: "8",
        "pods": "250",
    }
    assert amount(quotas(8, H100_POOL)["memory"]) == left.memory_kib
    assert amount(quotas(16, H100_POOL)["memory"]) == 2 * left.memory_kib


def test_a_quota_has_the_pods_of_its_nodes() -> None:
    few = quotas(8, PoolSettings(vm_sku=H100, max_pods=100))
    assert few["pods"] == "100"
    assert amount(few["memory"]) == allocatable(sku(H100), 100).memory_kib > amount(quotas(8, H100_POOL)["memory"])


def test_rounds_shares_up() -> None:
    sliced = PoolSettings(vm_sku=H100, gpu_slices=4)
    assert quotas(1, sliced)[RDMA] == "1"
    assert quotas(32, sliced)[RDMA] == "8"


def test_a_quota_fits_a_whole_node_of_any_pool() -> None:
    both = quotas(8, H100_POOL, PoolSettings(vm_sku=T4))
    for pool in (H100_POOL, PoolSettings(vm_sku=T4)):
        left = allocatable(pool.sku)
        assert amount(both["cpu"]) >= left.cpu_millis
        assert amount(both["memory"]) >= left.memory_kib


def test_a_quota_without_infiniband_has_no_rdma() -> None:
    assert RDMA not in quotas(8, PoolSettings(vm_sku=T4))


@pytest.mark.parametrize(("gpus", "cpu"), [(0, "0"), (200, "2373500m"), (400, "4747")])
def test_amounts_have_the_canonical_form(gpus: int, cpu: str) -> None:
    assert quotas(gpus, H100_POOL)["cpu"] == cpu


def test_limits_of_gpus_also_limit_other_resources() -> None:
    team = TeamSettings(gpus=16, lending_limit=8, borrowing_limit=0)
    spec = queues.team_queue_spec("blue", team, [H100_POOL], RDMA)
    found = {each["name"]: each for each in spec["resourceGroups"][0]["flavors"][0]["resources"]}
    for key, gpus in (("nominalQuota", 16), ("lendingLimit", 8), ("borrowingLimit", 0)):
        assert {name: each[key] for name, each in found.items()} == quotas(gpus, H100_POOL)
    unlimited = queues.team_queue_spec("blue", TeamSettings(gpus=16), [H100_POOL], RDMA)
    for each in unlimited["resourceGroups"][0]["flavors"][0]["resources"]:
        assert set(each) == {"name", "nominalQuota"}


def test_the_flavor_tolerates_taints_of_pools_except_spot() -> None:
    spec = queues.flavor_spec([H100_POOL, PoolSettings(vm_sku=T4, spot=True, taints=("team=x:NoExecute",))])
    assert spec["nodeLabels"] == {"ai-on-aks/gpu": "true"}
    tolerated = {f"{each['key']}={each['value']}:{each['effect']}" for each in spec["tolerations"]}
    assert tolerated == {GPU_TAINT, "team=x:NoExecute"}
    assert SPOT_TAINT not in tolerated


def test_quotas_use_the_flavor_with_a_topology_if_enabled() -> None:
    plain, blocks = queues.flavor_spec([H100_POOL]), queues.flavor_spec([H100_POOL], topology=True)
    assert "topologyName" not in plain
    assert blocks == {**plain, "topologyName": queues.TOPOLOGY}
    labels = [each["nodeLabel"] for each in queues.topology_spec()["levels"]]
    assert labels == ["ai-on-aks/ib-pkey", "kubernetes.io/hostname"], "the node labeler sets the first"
    name = queues.flavor_name(blocks)
    spec = queues.team_queue_spec("blue", TeamSettings(gpus=8), [H100_POOL], RDMA, name)
    (flavor,) = spec["resourceGroups"][0]["flavors"]
    assert flavor["name"] == name != queues.flavor_name(plain) == "default-flavor"


def test_other_taints_rename_a_flavor_with_a_topology_only() -> None:
    """Kueue rejects changed tolerations of an existing flavor with a topology."""
    tainted = PoolSettings(vm_sku=H100, taints=(GPU_TAINT, "team=x:NoExecute"))
    blocks = {queues.flavor_name(queues.flavor_spec([pool], topology=True)) for pool in (H100_POOL, tainted)}
    assert len(blocks) == 2
    assert all(name.startswith(queues.TOPOLOGY_FLAVOR) for name in blocks)
    assert {queues.flavor_name(queues.flavor_spec([pool])) for pool in (H100_POOL, tainted)} == {queues.FLAVOR}
    assert queues.flavor_name(queues.flavor_spec([H100_POOL, H100_POOL], topology=True)) in blocks


def may(verb: str, group: str, resource: str) -> bool:
    return any(
        group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"]
        for rule in rights.rules()
    )


def test_members_may_create_queued_jobs_and_no_other_pods() -> None:
    assert kueue.configuration(30)["integrations"]["frameworks"] == list(rights.FRAMEWORKS)
    for framework, resource in rights.FRAMEWORKS.items():
        assert may("create", framework.partition("/")[0], resource)
    apps = (("apps", kind) for kind in ("deployments", "statefulsets", "daemonsets"))
    for group, resource in (("", "pods"), *apps, ("batch", "cronjobs")):
        assert not may("create", group, resource)
        assert not may("patch", group, resource)


@pytest.mark.parametrize("verb", ["create", "patch", "update", "delete", "impersonate", "bind", "escalate"])
def test_members_may_not_extend_their_rights(verb: str) -> None:
    for resource in ("localqueues", "workloads"):
        assert not may(verb, "kueue.x-k8s.io", resource)
    assert not may(verb, "rbac.authorization.k8s.io", "rolebindings")
    for resource in ("serviceaccounts", "resourcequotas"):
        assert not may(verb, "", resource)


def test_binds_users_and_groups_of_a_team() -> None:
    """Kubernetes compares names case-sensitively, and Entra's tokens have lower-case ids."""
    group = "0a0b0c0d-0000-0000-0000-000000000000"
    found: dict[str, Any] = rights.binding(TeamSettings(gpus=8, users=("alice",), groups=(group.upper(),)))
    assert found["role_ref"]["name"] == "mlbatch-edit"
    assert [(each["kind"], each["name"]) for each in found["subjects"]] == [("User", "alice"), ("Group", group)]
