"""Which pool each workload runs on, and whether it can.

It runs on the pool that it is told. Else the best one has, in this order:

1. what the workload asks for: InfiniBand; as many nodes, there for certain rather than by autoscaling; as many GPUs in
   a node; and what only it knows, such as their memory;
2. on-demand nodes, and not Spot;
3. no InfiniBand where it takes some GPUs of a node: the node is lost for jobs of whole nodes meanwhile; and GPUs that
   nobody shares where it takes whole nodes;
4. most GPUs: for the workload, then in the pool.
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
from config.schema.workload import Ground, WorkloadOptions, WorkloadSpec, other_size

_NUM_NODES = "numNodes"
"""The option by which workloads take another number of nodes than their pool has."""
_GPUS = "gpus"
"""The option of workloads that take single GPUs of a node."""
_POOLS: Path = ("pools",)
_MAX_NAMES = 100
"""Workloads that are compared with the known ones: more are no list of them."""


class Placer:
    """Places the workloads of one stack; `problems` fills as it goes."""

    def __init__(self, installation: Installation, inventory: Inventory) -> None:
        self._installation = installation
        self._stack = installation.stack
        self._inventory, self._workloads = inventory, inventory.workloads
        self._pools = self._stack.gpu_pools()
        self.problems: list[Problem] = []

    def place(self) -> dict[str, Placement[Any]]:
        """All workloads of the stack that can run, in their order."""
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
        """Checked options of every known workload; without those that are wrong."""
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
        """What the user set of a workload's options, under its name or by a key of their own."""
        given = dict(self._stack.workload_options.get(spec.name, {}))
        for key, option in self._keys(spec).items():
            value = at(self._stack, key)
            if option in given and str(given[option]) != str(value):
                path = ("workloadOptions", spec.name, option)
                what = f"is {given[option]!r}, but {key} is {value!r}, and both set the same"
                fix = either_by_hand(path, f"remove {key}")
                self.problems.append(Problem(path, what, f"one of the two, or {value} in both", fix))
            given[option] = value
        return given

    def _keys(self, spec: WorkloadSpec[Any]) -> dict[str, str]:
        """Those of the workload's top-level keys that are set, each with the option that it sets."""
        return {key: option for key, option in spec.keys.items() if at(self._stack, key) is not None}

    def _add(self, spec: WorkloadSpec[Any], problems: Iterable[Problem]) -> None:
        """Notes what is wrong with a workload's options, at the keys that the user has set."""
        for problem in first(problems):
            for key, option in self._keys(spec).items():
                problem = problem.moved(("workloadOptions", spec.name, option), (key,))
            self.problems.append(problem)

    def _placed(self, spec: WorkloadSpec[Any], options: WorkloadOptions) -> Iterator[Placement[Any]]:
        """On the best of the pools that it may have, or on each that is certain to have the nodes."""
        grounds = [self._ground(spec, options, key) for key in self._pool_keys(spec, options)]
        grounds.sort(key=lambda ground: _rank(spec, options, ground))
        certain = [ground for ground in grounds if _is_certain(spec, options, ground)] if spec.every_pool else []
        # Not the number of pools that it runs on: else another number of nodes could give its jobs other names.
        named = spec.every_pool and options.pool is None and len(self._pools) > 1
        for ground in certain or grounds[:1]:
            if self._is_fit(spec, options, ground):
                name = f"{spec.name}-{ground.pool_key}" if named else spec.name
                yield Placement(spec.name, name, options, ground.pool_key, ground.pool, ground.nodes)

    def _is_fit(self, spec: WorkloadSpec[Any], options: WorkloadOptions, ground: Ground) -> bool:
        """Notes what is wrong with a workload where it is placed; False if that place has not the nodes."""
        unfit = [
            *too_many_gpus(spec, options, ground),
            *partitioned(spec, options, ground),
            *spec.problems(options, ground),
        ]
        too_few = ground.nodes > ground.pool.max_nodes
        edited = {part for problem in unfit for edit in problem.suggestion.edits for part in edit.path}
        if too_few and _NUM_NODES not in edited:  # else it is mended by another number of them
            unfit.append(ground.too_few(spec.name, ground.nodes))
        if options.pool is None:  # it might be well on a pool that was left out
            unfit = [problem if problem.lacking else replace(problem, lacking=_POOLS) for problem in unfit]
        self._add(spec, unfit)
        return not too_few

    def _ground(self, spec: WorkloadSpec[Any], options: WorkloadOptions, key: str) -> Ground:
        pool = self._pools[key]
        return Ground(
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
            guest=self._stack.platform_stack is not None,
            teams=self._stack.teams,
            slack_gpus=self._stack.slack_gpus,
            scheduler=self._stack.operators.scheduler,
            preempts=self._stack.operators.preempts,
            operators=[key_of(each.name) for each in self._installation.enabled()],
        )

    def _pool_keys(self, spec: WorkloadSpec[Any], options: WorkloadOptions) -> list[str]:
        """The pool asked for, else those that have what the workload requires."""
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
            likely = near(options.pool, self._pools) or only  # any other could be many times dearer
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
        what = f"is {pool.vm_sku}, which has no InfiniBand, and workload {spec.name} needs it"
        return other_size(path, what, usable, spec.name)

    def _most_path(self, key: str) -> Path:
        if self._pools[key].autoscale:
            return "pools", key, "autoscale", "max"
        return (*self._path(key), "count") if self._path(key) else ("nodeCount",)

    def _path(self, key: str) -> Path:
        """What stands before a pool's properties: nothing for the default pool, whose are at the top."""
        default = key == DEFAULT_POOL and "pools" not in self._stack.model_fields_set
        return () if default else ("pools", key)


def _nodes(spec: WorkloadSpec[Any], options: WorkloadOptions, pool: PoolSettings) -> int:
    """How many nodes the workload needs if it runs on the pool. What the autoscaler may add is not certain."""
    return max(1, spec.nodes(options, pool.min_nodes))


def _is_certain(spec: WorkloadSpec[Any], options: WorkloadOptions, ground: Ground) -> bool:
    """Whether the nodes will be there, with GPUs that it can use."""
    return ground.nodes <= ground.pool.min_nodes and not any(partitioned(spec, options, ground))


def _suits(spec: WorkloadSpec[Any], options: WorkloadOptions, pool: PoolSettings) -> bool:
    """Whether the pool's hardware will do."""
    return pool.sku.infiniband is not None or not spec.requires.infiniband_on(_nodes(spec, options, pool))


def _rank(spec: WorkloadSpec[Any], options: WorkloadOptions, ground: Ground) -> tuple[int, ...]:
    """Sorts places of a workload by the order above, the best first; those that will not do, by what they lack."""
    pool, gpus = ground.pool, options.gpus_on(ground.pool.sku)
    asked = (
        ground.nodes > pool.max_nodes,
        max(0, gpus - most_gpus(options, pool)),
        len([*spec.problems(options, ground), *partitioned(spec, options, ground)]),
        ground.nodes > pool.min_nodes,
    )
    wasteful = bool(options.gpus_per_node and pool.sku.infiniband) or (
        options.gpus_per_node is None and pool.shares > 1
    )
    return (*asked, pool.spot, wasteful, -ground.nodes * gpus, -pool.min_nodes * pool.sku.gpus)


def too_many_gpus(spec: WorkloadSpec[Any], options: WorkloadOptions, ground: Ground) -> Iterator[Problem]:
    """A workload that takes more GPUs of a node than it offers."""
    pool = ground.pool
    gpus, most = options.gpus_on(pool.sku), most_gpus(options, pool)
    if gpus > most:
        path = ("workloadOptions", spec.name, _GPUS)
        where = f"a {pool.vm_sku} has" if pool.shares == 1 else f"a node of pool {ground.pool_key} offers"
        what = f"is {gpus}, more than {where}"
        yield Problem(path, what, f"at most {most}", set_command(path, most))


def most_gpus(options: WorkloadOptions, pool: PoolSettings) -> int:
    """How many a workload can have of a node: slices or partitions, unless it takes whole nodes, and so whole GPUs."""
    return pool.sku.gpus if options.gpus_per_node is None else pool.gpus


def partitioned(spec: WorkloadSpec[Any], options: WorkloadOptions, ground: Ground) -> Iterator[Problem]:
    """A workload of whole nodes whose GPUs are partitioned: a process has one partition, and NCCL joins none of a GPU.

    NVIDIA's MIG User Guide: no GPU-to-GPU P2P, and CUDA sees one compute instance alone.
    """
    if options.gpus_per_node is None and ground.pool.mig_profile:
        path = ("pools", ground.pool_key, "migProfile")
        what = f"partitions the GPUs, and workload {spec.name} takes nodes with whole ones"
        choice = path_text(("workloadOptions", spec.name, "pool"))
        fix = either_by_hand(path, f"set {choice} to a pool of whole GPUs")
        yield Problem(path, what, f"no value, or a pool of whole GPUs in {choice}", fix)


def unknown_workloads(names: Sequence[str], workloads: Mapping[str, Any]) -> Iterator[Problem]:
    """One problem for each name that is unknown, and for each that stands twice."""
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
            what = "has a comma without a name beside it"
            yield Problem(("workloads",), what, "names with one comma between two", fix)
        elif name not in workloads:
            what = f"contains {name!r}, an unknown workload{hint(likely)}"
            yield Problem(("workloads",), what, ", ".join(sorted(workloads)), fix)
        elif counts[name] > 1:
            yield Problem(("workloads",), f"contains {name!r} more than once", "each workload once", fix)


def missing_operators(
    installation: Installation, spec: WorkloadSpec[Any], placed: Collection[Placement[Any]]
) -> Iterator[Problem]:
    """One problem for each operator that is off, or without a part, and that the workload needs where it is placed."""
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
            what = f"is false, but workload {spec.name} needs it {why}"
            yield Problem(where, what, allowed, set_command(where, True))
        for value in brought.by.whole:
            if installation.value(brought.by, *value) is False:
                where = (*path, "values", *value)
                what = f"is false, but workload {spec.name} needs all of {brought.by.title}"
                yield Problem(where, what, allowed, set_command(where, True))
