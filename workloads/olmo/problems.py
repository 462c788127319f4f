"""What keeps OLMo from running where it is placed, found before anything is made."""

from __future__ import annotations

from collections.abc import Iterator

from config.errors import Path, Problem, set_command
from config.near import hint, near
from config.skus import VmSku, catalogue
from config.workload import Ground
from workloads._training import usable_bytes
from workloads.olmo.memory import least_nodes, state_bytes_per_gpu
from workloads.olmo.options import NAME, OlmoOptions

GB = 1e9
_OPTIONS: Path = ("workloadOptions", NAME)
_READ = "rl"
_WRITE = "racwdl"
"""Checkpoints are written beside their final name, renamed, and the oldest deleted."""


def problems(options: OlmoOptions, ground: Ground) -> Iterator[Problem]:
    """All of them; sizes that are unknown are another rule's business."""
    yield from _container(ground, "dataContainer", options.data_container, _READ)
    yield from _upload(options, ground)
    yield from _container(ground, "checkpointContainer", options.checkpoint_container, _WRITE)
    yield from _scratch(ground)
    if size := catalogue().get(ground.pool.vm_sku):
        yield from _hardware(ground, size)
        yield from _memory(options, ground, size)
        yield from _batch(options, ground, size)


def _container(ground: Ground, key: str, name: str, needed: str) -> Iterator[Problem]:
    """The container is there, and its SAS opens it for what is needed."""
    where: Path = ("storage", "containers", name, "permissions")
    if name not in ground.containers:
        known = ", ".join(ground.containers) or "none is set"
        what = f"is {name}, a container that the platform does not have"
        likely = near(name, ground.containers)
        fix = set_command((*_OPTIONS, key), likely[0]) if likely else set_command(where, needed)
        allowed = f"a container of the platform ({known})"
        yield Problem((*_OPTIONS, key), what + hint(likely), allowed, fix, lacking=("storage", "containers"))
        return
    permissions = ground.containers[name].permissions
    if missing := [letter for letter in needed if letter not in permissions]:
        better = "".join(letter for letter in _WRITE if letter in needed or letter in permissions)
        what = f"is {permissions}, but workload {NAME} also needs {''.join(missing)} there ({key})"
        yield Problem(where, what, f"all of {needed}", set_command(where, better))


def _upload(options: OlmoOptions, ground: Ground) -> Iterator[Problem]:
    container = ground.containers.get(options.data_container)
    if not options.prepare or container is None or container.upload:
        return
    where = ("storage", "containers", options.data_container, "upload")
    what = f"is false, but workload {NAME} copies its data there"
    allowed = f"true, or {NAME} with prepare: false on data that is there already"
    yield Problem(where, what, allowed, set_command(where, True))


def _scratch(ground: Ground) -> Iterator[Problem]:
    """Caches lie on local NVMe disks where the VM size has them; on other sizes, beside the pods."""
    size = catalogue().get(ground.pool.vm_sku)
    if ground.scratch or size is None or size.nvme is None:
        return
    what = f"is {ground.pool_key}, whose nodes have no NVMe scratch, and workload {NAME} keeps its caches there"
    if ground.pool.scratch:
        fix = set_command(("operators", "localNvmeScratch", "enabled"), True)
    else:
        fix = set_command((*ground.pool_path, "localNvmeScratch"), True)
    yield Problem((*_OPTIONS, "pool"), what, "a pool with NVMe scratch, or of a VM size without such disks", fix)


def _hardware(ground: Ground, size: VmSku) -> Iterator[Problem]:
    if not size.gpu_bf16_tflops:
        what = f"is {size.name}, whose {size.gpu_model} has no bf16, in which workload {NAME} trains"
        yield _other_size(ground, what, [each.name for each in _sizes()])
    if ground.nodes > 1 and not size.infiniband:
        where = (*_OPTIONS, "numNodes")
        what = f"is {ground.nodes}, but nodes of {size.name} have no InfiniBand between them"
        yield Problem(where, what, "1, or a VM size with InfiniBand", set_command(where, 1))


def _memory(options: OlmoOptions, ground: Ground, size: VmSku) -> Iterator[Problem]:
    """More nodes mend it, where there is InfiniBand between them."""
    training, least = options.training, least_nodes(options.training, size)
    nodes = ground.nodes if size.infiniband else 1
    if nodes >= least or not size.gpu_bf16_tflops:
        return
    needed, usable = state_bytes_per_gpu(training, nodes * size.gpus), usable_bytes(size.gpu_memory_gb)
    short = (
        f"would keep {needed / GB:.0f} GB on each GPU, of whose {size.gpu_memory_gb} GB {usable / GB:.0f} can be used"
    )
    if size.infiniband:
        where = (*_OPTIONS, "numNodes")
        what = f"is {nodes}, but {training.name} needs {least} nodes of {size.name}: it {short}"
        counts = [count for count in training.node_counts(size.gpus, micro_batch=1) if count >= least]
        yield Problem(where, what, ", ".join(map(str, counts)), set_command(where, counts[0]))
        if counts[0] > ground.pool.max_nodes:
            yield ground.too_few(NAME, counts[0])
    else:
        what = f"is {size.name}, where {training.name} {short}"
        better = [each.name for each in _sizes() if each.infiniband or least_nodes(training, each) == 1]
        yield _other_size(ground, what, better)


def _sizes() -> list[VmSku]:
    """VM sizes whose GPUs OLMo trains on."""
    return [size for size in catalogue().values() if size.gpu_bf16_tflops and size.supported]


def _other_size(ground: Ground, what: str, usable: list[str]) -> Problem:
    where = (*ground.pool_path, "vmSku")
    return Problem(where, what, ", ".join(usable), set_command(where, usable[0]))


def _batch(options: OlmoOptions, ground: Ground, size: VmSku) -> Iterator[Problem]:
    """Every GPU takes the same number of whole micro-batches: OLMo asserts the first, and would warp the second."""
    training, micro_batch, gpus = options.training, options.sequences_at_once, ground.nodes * size.gpus
    if training.fits(gpus, micro_batch):
        return
    counts = training.node_counts(size.gpus, micro_batch)
    fewer = [count for count in counts if count < min(ground.nodes, ground.pool.max_nodes + 1)]
    smaller = training.largest_micro_batch(gpus)
    where: Path = (*_OPTIONS, "numNodes")
    if smaller is None and counts:
        fix = set_command(where, max(fewer or counts[:1]))
    else:
        where = (*_OPTIONS, "microBatch")
        fix = set_command(where, smaller or 1)
    what = (
        f"does not fit: {ground.nodes} nodes of {size.gpus} GPUs cannot share {training.name}'s batch of "
        f"{training.batch} sequences in micro-batches of {micro_batch}"
    )
    allowed = f"with micro-batches of {micro_batch}: numNodes {', '.join(map(str, counts)) or 'none'}"
    if smaller:
        allowed += f"; with {ground.nodes} nodes: microBatch {smaller}"
    yield Problem(where, what, allowed, fix)
