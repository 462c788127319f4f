from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import UTC, datetime
from types import ModuleType
from typing import Any
from urllib.error import HTTPError

import pytest

from config.data.scheduling import AUTOPILOT_LABEL, BAD_NODE, POOL_LABEL
from config.schema.pools import PoolSettings
from operators.kueue import queues
from operators.node_health import NodeHealthSettings, pod_spec, slack_variables
from simulator.plugins.kubernetes.checkpoint import prune
from simulator.plugins.kubernetes.structural import compare
from tests.support.case_files import case_table
from tests.support.docker_modules import imported
from tests.support.settings import settings_with
from tests.support.sizes import H100

Object = dict[str, Any]
GPU = "nvidia.com/gpu"
FIXED = {POOL_LABEL: "train"}
NOW = datetime(2026, 11, 27, 8, tzinfo=UTC)
QUOTAS = queues.quotas(8, [PoolSettings(vm_sku=H100)], "nvidia.com/mlnxnics")
SPEC = queues.cluster_queue_spec(QUOTAS, None)
PATH = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/slack-cluster-queue"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return imported("node-health", "slack_queue")


def node(
    taints: Sequence[Sequence[str]] = (),
    offered: int = 8,
    capacity: int = 8,
    name: str = "n",
    labels: Object | None = None,
    created: str = "2026-11-01T08:00:00Z",
) -> Object:
    return {
        "metadata": {"name": name, "resourceVersion": "7", "labels": labels or {}, "creationTimestamp": created},
        "spec": {"taints": [{"key": key, "effect": effect} for key, effect in taints]},
        "status": {"capacity": {GPU: str(capacity)}, "allocatable": {GPU: str(offered)}},
    }


def rules(script: ModuleType, pools: str) -> Any:
    environment = {"POOLS": pools, "WARM_UP_MINUTES": "30"}
    return script.Rules.of(environment, "aznhc", {BAD_NODE, f"{AUTOPILOT_LABEL}=EVICT"})


def queue(limit: str | None = None, quota: str = "8") -> Object:
    spec = copy.deepcopy(SPEC)
    gpus = next(each for each in spec["resourceGroups"][0]["flavors"][0]["resources"] if each["name"] == GPU)
    gpus |= {"nominalQuota": quota, **({"lendingLimit": limit} if limit else {})}
    return {"metadata": {"name": "slack-cluster-queue", "resourceVersion": "9"}, "spec": spec}


def limits(body: Object) -> Object:
    resources = body["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    return {each["name"]: each["lendingLimit"] for each in resources if "lendingLimit" in each}


@case_table(__file__, "lost")
def test_counts_gpus_that_no_job_can_use(script: ModuleType, changes: Object, gpus: int) -> None:
    assert script.POOL == POOL_LABEL
    pools = "train=1x8" if changes.get("labels") == FIXED else ""
    assert script.lost([node(**changes)], rules(script, pools), NOW) == gpus


def test_counts_nodes_without_allocatable_gpus(script: ModuleType) -> None:
    cordoned = {"metadata": {"name": "n"}, "spec": {"unschedulable": True}, "status": {"capacity": {GPU: "8"}}}
    assert script.lost([cordoned], rules(script, ""), NOW) == 8
    assert script.lost([{"metadata": {"name": "without drivers"}}], rules(script, ""), NOW) == 0


@pytest.mark.parametrize(
    ("nodes", "gpus"),
    [
        ([node(labels=FIXED), node(labels=FIXED)], 0),
        ([node(labels=FIXED)], 8),  # one node is missing
        ([node([("node.kubernetes.io/unschedulable", "NoSchedule")], labels=FIXED), *[node(labels=FIXED)] * 2], 0),
        ([node(labels=FIXED), node(labels={POOL_LABEL: "burst"})], 8),
    ],
    ids=["complete", "missing", "surge of an upgrade", "another pool"],
)
def test_counts_missing_gpus_of_a_fixed_pool(script: ModuleType, nodes: list[Object], gpus: int) -> None:
    assert script.lost(nodes, rules(script, "train=2x8,empty=0x4"), NOW) == gpus


@case_table(__file__, "limits")
def test_lends_the_rest_of_the_quota(script: ModuleType, before: str | None, lost: int, after: Object) -> None:
    body, message = script.change(queue(before), lost)
    assert (limits(body) if body else {}) == after
    assert bool(message) == bool(after)


def test_the_patch_does_not_overwrite_a_changed_quota(script: ModuleType) -> None:
    body, _ = script.change(queue(), 8)
    assert body["metadata"]["resourceVersion"] == "9"
    kept = prune(body["spec"]["resourceGroups"], SPEC["resourceGroups"])
    assert kept == SPEC["resourceGroups"]


def test_reads_canonical_quantities(script: ModuleType) -> None:
    assert script.change(queue(quota="1k"), 8)[1] == "lends 992 of 1000 GPUs"
    assert script.change(queue("1k", quota="1k"), 0) == ({}, "")


class NodesAndQueue:
    def __init__(self, *nodes: Object) -> None:
        self.objects = {f"/api/v1/nodes/{each['metadata']['name']}": each for each in nodes} | {PATH: queue()}
        self.patched: list[str] = []

    def call(self, method: str, path: str, body: Object | None = None) -> Object:
        if path.startswith("/api/v1/nodes?"):
            return {"items": [each for place, each in self.objects.items() if place != PATH]}
        if path not in self.objects:
            raise HTTPError(path, 404, "not found", None, None)  # type: ignore[arg-type]
        if body is not None:
            self.patched.append(path)
            self.objects[path] = {**self.objects[path], "spec": {**self.objects[path]["spec"], **body["spec"]}}
        return self.objects[path]


def round_of(api: NodesAndQueue, monkeypatch: pytest.MonkeyPatch, pools: str = "") -> int:
    health = imported("node-health", "node_health")
    variables = slack_variables(settings_with(slack_gpus=8)) | {"POOLS": pools}
    (container,) = pod_spec("image", NodeHealthSettings(), variables)["containers"]
    for entry in container["env"]:
        monkeypatch.setenv(entry["name"], entry["value"])
    monkeypatch.setattr(health, "call", api.call)
    return int(health.main())


def test_a_round_reduces_the_limit_by_a_tainted_node_and_restores_it_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = NodesAndQueue(node(name="a", labels={AUTOPILOT_LABEL: "EVICT"}), node(name="b"), node(name="c"))
    assert round_of(api, monkeypatch) == 0
    assert api.patched == ["/api/v1/nodes/a", PATH]
    assert limits(api.objects[PATH]) == {GPU: "0"}
    api.objects["/api/v1/nodes/a"] = node(name="a")
    assert round_of(api, monkeypatch) == 0
    assert limits(api.objects[PATH]) == {GPU: "8"}
    api.patched.clear()
    assert round_of(api, monkeypatch) == 0
    assert api.patched == []


def test_a_round_counts_missing_gpus_of_a_fixed_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    api = NodesAndQueue(node(offered=7, capacity=7, labels=FIXED))
    assert round_of(api, monkeypatch, "train=1x8") == 0
    assert limits(api.objects[PATH]) == {GPU: "7"}


def test_a_round_without_the_queue_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    api = NodesAndQueue(node())
    del api.objects[PATH]
    assert round_of(api, monkeypatch) == 0


def test_expects_all_gpus_of_fixed_pools_only() -> None:
    """An autoscaled pool's new node has no GPUs until its drivers are built."""
    scaled = PoolSettings.model_validate({"vmSku": H100, "autoscale": {"min": 0, "max": 2}})
    pools = {"train": PoolSettings(vm_sku=H100, count=2), "burst": scaled}
    assert slack_variables(settings_with(pools=pools, slack_gpus=8))["POOLS"] == "train=2x8"
    assert slack_variables(settings_with(pools=pools, slack_gpus=0)) == {}


def test_pulumi_sees_no_change_in_a_queue_with_a_limit() -> None:
    """The plugin compares only declared fields, also after a refresh."""
    live = queue("4")
    assert compare(prune(live["spec"], SPEC), SPEC) == {}
