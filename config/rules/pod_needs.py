"""Rules for `podOverrides`, which must keep all fields that pods on GPU nodes need, and rules for node checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from config.data.near import hint, near
from config.data.scheduling import AGENT_POOL_LABEL, GPU_RESOURCE, SCRATCH_LABEL, SPOT_LABEL
from config.problems.errors import Problem
from config.problems.fixes import Path, path_text, remove_command, set_command
from config.schema.models import Placement, StackFile
from config.schema.operators import NODE_HEALTH, key_of
from config.schema.pools import PoolSettings, agent_pool_name, node_labels, node_taints
from config.schema.workload import GpuPods, WorkloadCatalogue, WorkloadSpec
from k8s.scheduling import tolerates, toleration

_REQUIRED = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
_NEEDED: tuple[Path, ...] = (
    *(_REQUIRED[:length] for length in range(1, len(_REQUIRED) + 1)),
    *(("spec", key) for key in ("containers", "restartPolicy", "schedulerName", "tolerations")),
)


@dataclass(frozen=True, kw_only=True)
class _Placed:
    workload: str
    overrides: Mapping[str, Any]
    pods: GpuPods
    pool_key: str
    pool: PoolSettings
    rdma_resource: str
    scheduler: str

    @property
    def path(self) -> Path:
        return "workloadOptions", self.workload, "podOverrides"

    @property
    def spec(self) -> Mapping[str, Any]:
        return self.overrides.get("spec") or {}

    def problem(self, below: Path, what: str, allowed: str) -> Problem:
        path = (*self.path, *below)
        return Problem(path, what, allowed, remove_command(path))


def override_problems(
    placements: Iterable[Placement[Any]], workloads: WorkloadCatalogue, rdma_resource: str, scheduler: str
) -> Iterator[Problem]:
    for found in placements:
        yield from _problems(
            _Placed(
                workload=found.workload,
                overrides=found.options.pod_overrides,
                pods=workloads[found.workload].pods,
                pool_key=found.pool_key,
                pool=found.pool,
                rdma_resource=rdma_resource,
                scheduler=scheduler,
            )
        )


def _problems(placed: _Placed) -> Iterator[Problem]:
    yield from _nulls(placed)
    yield from _fixed(placed)
    yield from _containers(placed)
    yield from _node_selector(placed)
    yield from _affinity(placed)
    yield from _tolerations(placed)


def _nulls(placed: _Placed) -> Iterator[Problem]:
    for path in _NEEDED:
        here: Any = placed.overrides
        for part in path[:-1]:
            here = here.get(part) or {}
        if path[-1] in here and here[path[-1]] is None:
            yield placed.problem(
                path, f"is null, but pods of workload {placed.workload} need it", "no value, or the keys to change"
            )


def _fixed(placed: _Placed) -> Iterator[Problem]:
    counts = "which starts all pods together and counts allocated devices"
    reasons = {
        "schedulerName": (placed.scheduler, counts),
        "restartPolicy": (placed.pods.restart_policy, "which their controller needs"),
        "nodeName": ("", f"because a node name would bypass {placed.scheduler}"),
    }
    for key, (needed, why) in reasons.items():
        given = placed.spec.get(key)
        if given not in (None, needed):
            but = f"but pods of workload {placed.workload} have {needed or 'no value'}, {why}"
            yield placed.problem(("spec", key), f"is {given!r}, {but}", needed or "no value; use nodeSelector")


def _containers(placed: _Placed) -> Iterator[Problem]:
    own = placed.pods.container
    for index, container in enumerate(placed.spec.get("containers") or []):
        path: Path = ("spec", "containers", index)
        if container["name"] != own and "image" not in container:
            name, where = container["name"], (*placed.path, *path, "name")
            what = f"is {name!r}, not a container of workload {placed.workload}{hint(near(name, [own]))}"
            yield Problem(where, what, f"{own}; an additional container needs an image", set_command(where, own))
        if "resources" in container:
            yield from _devices(placed, (*path, "resources"), container["resources"])


def _devices(placed: _Placed, path: Path, resources: Any) -> Iterator[Problem]:
    devices = (GPU_RESOURCE, placed.rdma_resource)
    allowed = f"resources except {' and '.join(devices)}, which the pool and the workload's options set"
    taken = f"removes the devices of workload {placed.workload}"
    if resources is None:
        yield placed.problem(path, f"is null, which {taken}", allowed)
    for kind in ("limits", "requests"):
        given = (resources or {}).get(kind, {})
        if given is None:
            yield placed.problem((*path, kind), f"is null, which {taken}", allowed)
        for device in devices:
            if device in (given or {}):
                what = f"is a device that workload {placed.workload} requests itself"
                yield placed.problem((*path, kind, device), what, allowed)


def _node_selector(placed: _Placed) -> Iterator[Problem]:
    known = {SCRATCH_LABEL: None, SPOT_LABEL: None, **_labels(placed.pool_key, placed.pool)}
    for key, value in (placed.spec.get("nodeSelector") or {}).items():
        if value is not None and key in known and known[key] != value:
            has = f"the label is {known[key]!r}" if known[key] else "the label does not exist"
            what = f"is {value!r}, but on nodes of pool {placed.pool_key}, where workload {placed.workload} runs, {has}"
            allowed = f"labels of the pool's nodes, or another pool in {path_text((*placed.path[:-1], 'pool'))}"
            yield placed.problem(("spec", "nodeSelector", key), what, allowed)


def _labels(key: str, pool: PoolSettings) -> dict[str, str]:
    return {
        **node_labels(key, pool),
        AGENT_POOL_LABEL: agent_pool_name(key, pool),
        "kubernetes.azure.com/mode": "user",
        "kubernetes.io/arch": pool.sku.arch,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": pool.vm_sku,
    }


def _affinity(placed: _Placed) -> Iterator[Problem]:
    here: Any = placed.overrides
    for part in _REQUIRED:
        here = here.get(part) or {}
    if here:
        what = f"replaces the rule that keeps workload {placed.workload} in one pool, on one InfiniBand fabric"
        yield placed.problem(_REQUIRED, what, "nodeSelector, or preferredDuringSchedulingIgnoredDuringExecution")


def _tolerations(placed: _Placed) -> Iterator[Problem]:
    given = placed.spec.get("tolerations")
    tolerated = [dict(each) for each in given or []]
    taints = [taint for taint in node_taints(placed.pool) if not taint.endswith(":PreferNoSchedule")]
    # A toleration must match a taint's own key, value and effect.
    missing = [taint for taint in taints if not tolerates(tolerated, toleration(taint))]
    if given is not None and missing:
        has = f"nodes of pool {placed.pool_key} have the taint {', '.join(missing)}"
        what = f"replaces all tolerations, but {has}"
        yield placed.problem(("spec", "tolerations"), what, f"a list that also tolerates {', '.join(taints)}")


def node_check_problems(
    stack: StackFile, spec: WorkloadSpec[Any], placed: Iterable[Placement[Any]]
) -> Iterator[Problem]:
    for placement in placed:
        depth = placement.options.node_check
        path: Path = ("workloadOptions", spec.name, "nodeCheck")
        if depth == "off":
            continue
        if stack.operators.failure_effect is None:
            enabled: Path = ("operators", key_of(NODE_HEALTH), "enabled")
            what = f"is false, but workload {spec.name} has nodeCheck {depth}: no check could taint a "
            what += "bad node, and the job would return to that node"
            yield Problem(enabled, what, "true, or nodeCheck off", set_command(enabled, True))
        if spec.pods.restart_policy != "Never":
            what = f"is {depth}, but pods of workload {spec.name} restart on the same node, even if it is bad"
            yield Problem(path, what, "off", set_command(path, "off"))
        elif placement.pool.shares > 1:
            what = f"is {depth}, but GPUs of pool {placement.pool_key} are shared, and the checks need whole GPUs"
            yield Problem(path, what, "off", set_command(path, "off"))
        elif depth == "full" and (gpus := placement.options.gpus_on(placement.pool.sku)) < placement.pool.sku.gpus:
            what = f"is full, which measures all devices of a node, but workload {spec.name} takes {gpus} of the "
            yield Problem(path, f"{what}{placement.pool.sku.gpus} GPUs", "light or off", set_command(path, "light"))
