"""Checks of OLMo's options and placement, before deployment."""

from __future__ import annotations

from collections.abc import Iterator

from config.data.blobfuse import profiles, remembers
from config.data.skus import VmSku, catalogue
from config.problems.errors import Problem
from config.problems.fixes import Path, by_hand, set_command
from config.schema.workload import Candidate, other_size
from workloads._lib.containers import container_problems
from workloads._lib.training import GB, usable_bytes
from workloads.olmo.memory import bytes_per_gpu, holds, micro_batch
from workloads.olmo.options import NAME, OlmoOptions

_OPTIONS: Path = ("workloadOptions", NAME)


def problems(options: OlmoOptions, candidate: Candidate) -> Iterator[Problem]:
    size = candidate.pool.sku
    yield from container_problems(NAME, candidate, "dataContainer", options.data_container)
    yield from _upload(options, candidate)
    yield from container_problems(NAME, candidate, "checkpointContainer", options.checkpoint_container, writes=True)
    yield from _seen_by_all(options, candidate)
    yield from _scratch(candidate)
    yield from _hardware(candidate, size)
    yield from _memory(options, candidate, size)
    yield from _batch(options, candidate, size)


def _seen_by_all(options: OlmoOptions, candidate: Candidate) -> Iterator[Problem]:
    """Yields a problem if nodes see new checkpoints too late.

    Rank 0 creates and renames a checkpoint's folder. Other ranks wait at most 10 s to see it (allenai/OLMo 59a53e3,
    olmo/checkpoint.py, _temporary_wd; olmo/util.py, wait_for). The first checkpoint is written before the first step
    (scripts/train.py). Ranks on one node share a mount, which shows changes immediately.
    """
    name = options.checkpoint_container
    account = candidate.storage.by_container().get(name)
    profile = account.settings.containers[name].profile if account else ""
    if candidate.nodes == 1 or account is None or not remembers(profile):
        return
    where = (*account.path_of(name), "profile")
    what = (
        f"is {profile}, which shows files of other nodes only after minutes, but workload {NAME} on "
        f"{candidate.nodes} nodes fails if it does not see a checkpoint within 10 seconds"
    )
    usable = [profile for profile in profiles() if not remembers(profile)]
    yield Problem(where, what, f"{', '.join(usable)}, or numNodes: 1", set_command(where, usable[0]))


def _upload(options: OlmoOptions, candidate: Candidate) -> Iterator[Problem]:
    account = candidate.storage.by_container().get(options.data_container)
    if not options.prepare or account is None:
        return
    if account.settings.auth == "identity":
        way: Path = (*account.path, "auth")
        what = f"is identity, but workload {NAME} needs a SAS to copy its data"
        allowed = "sas, or prepare: false if the container already has the data"
        yield Problem(way, what, allowed, by_hand(way))
        return
    container = account.settings.containers[options.data_container]
    if container.upload:
        return
    where = (*account.path_of(options.data_container), "upload")
    what = f"is false, but workload {NAME} copies its data there"
    allowed = "true, or prepare: false if the container already has the data"
    fix = by_hand(where) if "upload" in container.model_fields_set else set_command(where, True)
    yield Problem(where, what, allowed, fix)


def _scratch(candidate: Candidate) -> Iterator[Problem]:
    """Yields a problem if nodes with local NVMe have no scratch for caches. Other nodes use the pods' disk."""
    if candidate.scratch or candidate.pool.sku.nvme is None:
        return
    what = f"is {candidate.pool_key}, but its nodes have no NVMe scratch, which workload {NAME} needs for caches"
    if candidate.pool.scratch:
        fix = set_command(("operators", "localNvmeScratch", "enabled"), True)
    else:
        fix = set_command((*candidate.pool_path, "localNvmeScratch"), True)
    yield Problem((*_OPTIONS, "pool"), what, "a pool with NVMe scratch, or of a VM size without NVMe disks", fix)


def _hardware(candidate: Candidate, size: VmSku) -> Iterator[Problem]:
    if not size.gpu_bf16_tflops:
        what = f"is {size.name}, but its {size.gpu_model} does not support bf16, which workload {NAME} needs"
        yield other_size((*candidate.pool_path, "vmSku"), what, [each.name for each in _sizes()], NAME)
    if candidate.nodes > 1 and not size.infiniband:
        where = (*_OPTIONS, "numNodes")
        what = f"is {candidate.nodes}, but {size.name} has no InfiniBand"
        yield Problem(where, what, "1, or a VM size with InfiniBand", set_command(where, 1))


def _memory(options: OlmoOptions, candidate: Candidate, size: VmSku) -> Iterator[Problem]:
    training, nodes = options.training, candidate.nodes if size.infiniband else 1
    at_once = micro_batch(options, size, nodes)
    if holds(training, size, nodes, at_once) or not size.gpu_bf16_tflops:
        return
    needed = bytes_per_gpu(training, gpus=nodes * size.gpus, micro_batch=at_once)
    usable = usable_bytes(size.gpu_memory_gb)
    short = (
        f"{training.name} with micro-batches of {at_once} needs {needed / GB:.0f} GB on each GPU of {nodes} "
        f"{'node' if nodes == 1 else 'nodes'}, but only {usable / GB:.0f} of its {size.gpu_memory_gb} GB are usable"
    )
    most = min(at_once - 1, training.batch // (nodes * size.gpus))
    smaller = (each for each in range(most, 0, -1) if training.fits(nodes * size.gpus, each))
    if fitting := next((each for each in smaller if holds(training, size, nodes, each)), None):
        where: Path = (*_OPTIONS, "microBatch")
        yield Problem(where, f"is {at_once}: {short}", f"at most {fitting}, or no value", set_command(where, fitting))
        return
    counts = training.node_counts(size.gpus, micro_batch=1) if size.infiniband else []
    if more := [count for count in counts if count > nodes and holds(training, size, count, 1)]:
        where = (*_OPTIONS, "numNodes")
        allowed = f"with micro-batches of 1: {', '.join(map(str, more))}"
        yield Problem(where, f"is {nodes}: {short}", allowed, set_command(where, more[0]))
        if more[0] > candidate.pool.max_nodes:
            yield candidate.too_few(NAME, more[0])
        return
    better = [each.name for each in _sizes() if holds(training, each, nodes if each.infiniband else 1, 1)]
    what, able = f"is {size.name}: {short}", better or [each.name for each in _sizes()]
    yield other_size((*candidate.pool_path, "vmSku"), what, able, NAME)


def _sizes() -> list[VmSku]:
    return [size for size in catalogue().values() if size.gpu_bf16_tflops and size.supported]


def _batch(options: OlmoOptions, candidate: Candidate, size: VmSku) -> Iterator[Problem]:
    """Yields a problem unless each GPU gets the same number of whole micro-batches, as OLMo needs."""
    training, at_once, gpus = options.training, micro_batch(options, size, candidate.nodes), candidate.nodes * size.gpus
    if training.fits(gpus, at_once):
        return
    counts = training.node_counts(size.gpus, at_once)
    fewer = [count for count in counts if count < min(candidate.nodes, candidate.pool.max_nodes + 1)]
    smaller = training.largest_micro_batch(gpus)
    where: Path = (*_OPTIONS, "numNodes")
    if smaller is None and counts:
        fix = set_command(where, max(fewer or counts[:1]))
    else:
        where = (*_OPTIONS, "microBatch")
        fix = set_command(where, smaller or 1)
    what = (
        f"does not fit: {candidate.nodes} nodes of {size.gpus} GPUs cannot share {training.name}'s batch of "
        f"{training.batch} sequences with micro-batches of {at_once}"
    )
    allowed = f"with micro-batches of {at_once}: numNodes {', '.join(map(str, counts)) or 'none'}"
    if smaller:
        allowed += f"; with {candidate.nodes} nodes: microBatch {smaller}"
    yield Problem(where, what, allowed, fix)
