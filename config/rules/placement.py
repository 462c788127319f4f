"""Chooses the pool of each workload, and checks that it can run there.

A workload runs on the pool in its options. Otherwise the best pool has, in this order:

1. what the workload needs: InfiniBand; enough nodes, without autoscaling if possible; enough GPUs per node; and its
   own requirements, such as GPU memory;
2. on-demand instead of Spot nodes;
3. no InfiniBand if the workload takes only some GPUs of a node, because whole-node jobs could not use that node; no
   shared GPUs if the workload takes whole nodes;
4. the most GPUs for the workload, then the most GPUs in the pool.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from pydantic import ValidationError

from config.data.near import hint, is_spelling, near, resembles
from config.data.skus import catalogue
from config.problems.errors import Problem, first
from config.problems.fixes import Path, by_hand, either_by_hand, path_text, remove_command, set_command
from config.rules.pod_needs import node_check_problems
from config.rules.schedulers import mpi_problems
from config.schema.base import at
from config.schema.inventory import Inventory
from config.schema.models import DEFAULT_POOL, Placement
from config.schema.operators import Capability, Installation, key_of
from config.schema.pools import PoolSettings
from config.schema.translate import problems_of
from config.schema.workload import Candidate, WorkloadOptions, WorkloadSpec, other_size

_NUM_NODES = "numNodes"
_GPUS = "gpus"
_POOLS: Path = ("pools",)
_MAX_NAMES = 100


class Placer:
    """Places the workloads of one stack, and collects `problems`."""

    def __init__(self, installation: Installation, inventory: Inventory) -> None:
        self._installation = installation
        self._stack = installation.stack
        self._inventory, self._workloads = inventory, inventory.workloads
        self._pools = self._stack.gpu_pools()
        self.problems: list[Problem] = []

    def place(self) -> dict[str, Placement[Any]]:
        options = self._options()
        self.problems += first(unknown_workloads(self._stack.workloads, self._workloads))
        placements: dict[str, Placement[Any]] = {}
        for name in dict.fromkeys(self._stack.workloads):
            if spec := self._workloads.get(name):
                placed = list(self._placed(spec, options[name])) if name in options else []
                self.problems += mpi_problems(self._stack, spec)
                self.problems += missing_operators(self._installation, spec, placed)
                self.problems += node_check_problems(self._stack, spec, placed)
                placements |= {placement.name: placement for placement in placed}
        return placements

    def _options(self) -> dict[str, WorkloadOptions]:
        checked: dict[str, WorkloadOptions] = {}
        for name, spec in self._workloads.items():
            chosen = self._given(spec)
            try:
                checked[name] = spec.options.model_validate(chosen, by_alias=True, by_name=False)
            except ValidationError as error:
                self._add(
                    spec, problems_of(error.errors(), spec.options, chosen, ("workloadOptions", name), self._inventory)
                )
        return checked

    def _given(self, spec: WorkloadSpec[Any]) -> dict[str, Any]:
        given = dict(self._stack.workload_options.get(spec.name, {}))
        for key, option in self._keys(spec).items():
            value = at(self._stack, key)
            if option in given and str(given[option]) != str(value):
                path = ("workloadOptions", spec.name, option)
                what = f"is {given[option]!r}, but {key} is {value!r}, and both set the same option"
                fix = either_by_hand(path, f"remove {key}")
                self.problems.append(Problem(path, what, f"one of the two, or {value} in both", fix))
            given[option] = value
        return given

    def _keys(self, spec: WorkloadSpec[Any]) -> dict[str, str]:
        return {key: option for key, option in spec.keys.items() if at(self._stack, key) is not None}

    def _add(self, spec: WorkloadSpec[Any], problems: Iterable[Problem]) -> None:
        for problem in first(problems):
            for key, option in self._keys(spec).items():
                problem = problem.moved(("workloadOptions", spec.name, option), (key,))
            self.problems.append(problem)

    def _placed(self, spec: WorkloadSpec[Any], options: WorkloadOptions) -> Iterator[Placement[Any]]:
        candidates = [self._candidate(spec, options, key) for key in self._pool_keys(spec, options)]
        candidates.sort(key=lambda candidate: _rank(spec, options, candidate))
        certain = (
            [candidate for candidate in candidates if _is_certain(spec, options, candidate)] if spec.every_pool else []
        )
        # Counts all pools, not only usable ones, so that another number of nodes does not rename jobs.
        named = spec.every_pool and options.pool is None and len(self._pools) > 1
        for candidate in certain or candidates[:1]:
            if self._is_fit(spec, options, candidate):
                name = f"{spec.name}-{candidate.pool_key}" if named else spec.name
                yield Placement(spec.name, name, options, candidate.pool_key, candidate.pool, candidate.nodes)

    def _is_fit(self, spec: WorkloadSpec[Any], options: WorkloadOptions, candidate: Candidate) -> bool:
        unfit = [
            *too_many_gpus(spec, options, candidate),
            *partitioned(spec, options, candidate),
            *spec.problems(options, candidate),
        ]
        too_few = candidate.nodes > candidate.pool.max_nodes
        edited = {part for problem in unfit for edit in problem.suggestion.edits for part in edit.path}
        if too_few and _NUM_NODES not in edited:  # otherwise another fix already changes it
            unfit.append(candidate.too_few(spec.name, candidate.nodes))
        if options.pool is None:  # a pool that was removed as invalid might fit
            unfit = [problem if problem.lacking else replace(problem, lacking=_POOLS) for problem in unfit]
        self._add(spec, unfit)
        return not too_few

    def _candidate(self, spec: WorkloadSpec[Any], options: WorkloadOptions, key: str) -> Candidate:
        pool = self._pools[key]
        return Candidate(
            pool_key=key,
            pool=pool,
            pool_path=self._path(key),
            most_path=self._most_path(key),
            nodes=_nodes(spec, options, pool),
            pools=self._pools,
            storage=self._stack.storage,
            shared_files=self._stack.shared_files,
            scratch=pool.scratch and self._installation.brought("NVMe scratch").enabled,
            shared_class=self._stack.shared_class is not None,
            on_shared_platform=self._stack.platform_stack is not None,
            teams=self._stack.teams,
            slack_gpus=self._stack.slack_gpus,
            scheduler=self._stack.operators.scheduler,
            preempts=self._stack.operators.preempts,
            operators=[key_of(each.name) for each in self._installation.enabled()],
        )

    def _pool_keys(self, spec: WorkloadSpec[Any], options: WorkloadOptions) -> list[str]:
        suitable = [key for key, pool in self._pools.items() if _suits(spec, options, pool)]
        if not self._pools:
            return []
        if options.pool is None:
            if suitable:
                return suitable
            first = next(iter(self._pools))
            self.problems.append(replace(self._no_infiniband(spec, first, self._pools[first]), lacking=_POOLS))
        elif options.pool not in self._pools:
            path = ("workloadOptions", spec.name, "pool")
            platform = self._stack.platform_stack
            whose = f"the platform of stack {platform}" if platform else "this stack"
            what = f"is {options.pool!r}, not a pool of {whose}"
            only = list(self._pools) if len(self._pools) == 1 and not platform else []
            likely = near(options.pool, self._pools) or only  # another pool could cost much more
            fix = set_command(path, likely[0]) if likely else by_hand(path)
            self.problems.append(Problem(path, what, ", ".join(self._pools), fix, lacking=_POOLS))
        elif options.pool in suitable:
            return [options.pool]
        else:
            self.problems.append(self._no_infiniband(spec, options.pool, self._pools[options.pool]))
        return []

    def _no_infiniband(self, spec: WorkloadSpec[Any], key: str, pool: PoolSettings) -> Problem:
        path = (*self._path(key), "vmSku")
        usable = [size.name for size in catalogue().values() if size.infiniband and size.supported]
        what = f"is {pool.vm_sku}, which has no InfiniBand, but workload {spec.name} needs it"
        return other_size(path, what, usable, spec.name)

    def _most_path(self, key: str) -> Path:
        if self._pools[key].autoscale:
            return "pools", key, "autoscale", "max"
        return (*self._path(key), "count") if self._path(key) else ("nodeCount",)

    def _path(self, key: str) -> Path:
        default = key == DEFAULT_POOL and "pools" not in self._stack.model_fields_set
        return () if default else ("pools", key)


def _nodes(spec: WorkloadSpec[Any], options: WorkloadOptions, pool: PoolSettings) -> int:
    return max(1, spec.nodes(options, pool.min_nodes))


def _is_certain(spec: WorkloadSpec[Any], options: WorkloadOptions, candidate: Candidate) -> bool:
    return candidate.nodes <= candidate.pool.min_nodes and not any(partitioned(spec, options, candidate))


def _suits(spec: WorkloadSpec[Any], options: WorkloadOptions, pool: PoolSettings) -> bool:
    return pool.sku.infiniband is not None or not spec.requires.infiniband_on(_nodes(spec, options, pool))


def _rank(spec: WorkloadSpec[Any], options: WorkloadOptions, candidate: Candidate) -> tuple[int, ...]:
    pool, gpus = candidate.pool, options.gpus_on(candidate.pool.sku)
    asked = (
        candidate.nodes > pool.max_nodes,
        max(0, gpus - most_gpus(options, pool)),
        len([*spec.problems(options, candidate), *partitioned(spec, options, candidate)]),
        candidate.nodes > pool.min_nodes,
    )
    wasteful = bool(options.gpus_per_node and pool.sku.infiniband) or (
        options.gpus_per_node is None and pool.shares > 1
    )
    return (*asked, pool.spot, wasteful, -candidate.nodes * gpus, -pool.min_nodes * pool.sku.gpus)


def too_many_gpus(spec: WorkloadSpec[Any], options: WorkloadOptions, candidate: Candidate) -> Iterator[Problem]:
    pool = candidate.pool
    gpus, most = options.gpus_on(pool.sku), most_gpus(options, pool)
    if gpus > most:
        path = ("workloadOptions", spec.name, _GPUS)
        where = f"a {pool.vm_sku} has" if pool.shares == 1 else f"a node of pool {candidate.pool_key} offers"
        what = f"is {gpus}, more than {where}"
        yield Problem(path, what, f"at most {most}", set_command(path, most))


def most_gpus(options: WorkloadOptions, pool: PoolSettings) -> int:
    """Returns the maximum number of GPUs per node for a workload: whole GPUs if it takes whole nodes, else slices or
    partitions.
    """
    return pool.sku.gpus if options.gpus_per_node is None else pool.gpus


def partitioned(spec: WorkloadSpec[Any], options: WorkloadOptions, candidate: Candidate) -> Iterator[Problem]:
    """Yields a problem if a whole-node workload gets GPU partitions: a process uses only one, and NCCL cannot join
    several.

    NVIDIA's MIG User Guide: no GPU-to-GPU P2P, and CUDA sees only one compute instance.
    """
    if options.gpus_per_node is None and candidate.pool.mig_profile:
        path = ("pools", candidate.pool_key, "migProfile")
        what = f"partitions the GPUs, but workload {spec.name} needs whole GPUs"
        choice = path_text(("workloadOptions", spec.name, "pool"))
        fix = either_by_hand(path, f"set {choice} to a pool of whole GPUs")
        yield Problem(path, what, f"no value, or a pool of whole GPUs in {choice}", fix)


def unknown_workloads(names: Sequence[str], workloads: Mapping[str, Any]) -> Iterator[Problem]:
    counts = Counter(names)
    known = {name: [name] if name in workloads else near(name, workloads) for name in islice(counts, _MAX_NAMES)}
    several = {name: re.findall(r"[^\s;|+]+", name) for name in known if name not in workloads}
    meant = [
        several[name]
        if several.get(name) and set(several[name]) <= set(workloads)
        else [each for each in likely[:1] if resembles(name, each) or is_spelling(name, each.partition("-")[0])]
        for name, likely in known.items()
    ]
    better = ",".join(dict.fromkeys(each for found in meant for each in found))
    is_clear = all(each or not name for name, each in zip(known, meant, strict=True))
    fix = set_command(("workloads",), better) if better and is_clear else by_hand(("workloads",))
    fix = fix if any(known) else remove_command(("workloads",))
    for name, likely in known.items():
        if not name:
            what = "has a comma without a name"
            yield Problem(("workloads",), what, "names separated by one comma", fix)
        elif name not in workloads:
            what = f"contains {name!r}, an unknown workload{hint(likely)}"
            yield Problem(("workloads",), what, ", ".join(sorted(workloads)), fix)
        elif counts[name] > 1:
            yield Problem(("workloads",), f"contains {name!r} more than once", "each workload once", fix)


def missing_operators(
    installation: Installation, spec: WorkloadSpec[Any], placed: Collection[Placement[Any]]
) -> Iterator[Problem]:
    takes_hcas = any(each.options.gpus_per_node is None and each.pool.sku.infiniband for each in placed)
    needs: dict[Capability, str] = {"GPUs": "for its GPUs", "scheduler": "as its scheduler"}
    if takes_hcas or spec.requires.infiniband_on(max((each.nodes for each in placed), default=1)):
        needs["InfiniBand"] = "for InfiniBand"
    for capability, why in needs.items():
        brought = installation.brought(capability)
        path: Path = ("operators", key_of(brought.by.name))
        allowed = f"true, or a stack without {spec.name}"
        if not brought.enabled:
            where: Path = (*path, "enabled")
            what = f"is false, but workload {spec.name} needs {brought.by.title} {why}"
            yield Problem(where, what, allowed, set_command(where, True))
        for value in brought.by.needed_values:
            if installation.value(brought.by, *value) is False:
                where = (*path, "values", *value)
                what = f"is false, but workload {spec.name} needs all of {brought.by.title}"
                yield Problem(where, what, allowed, set_command(where, True))
