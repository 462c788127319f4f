"""`metaseq-train`: takes what each rank is given, and plays the training of all ranks up to its last update."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlparse

from simulator.sandbox.library import (
    c10d,
    metaseq_log,
    metaseq_options,
    nccl,
    nccl_tests,
    ranks,
    training,
    view,
)
from simulator.sandbox.library.metaseq_model import SPECIAL_SYMBOLS, Model
from simulator.sandbox.library.nccl_log import Log, Process, pause
from simulator.sandbox.library.programs import Call
from simulator.world.network import Collective

OWN = ("distributed_rank", "device_id")  # options in which ranks differ
SECONDS_PER_UPDATE = 0.2  # at most: the simulation does not take as long as the training would
STORE_TIMEOUT_S = 1800  # metaseq's distributed/rendezvous.py keeps PyTorch's; in the simulation it passes at once
NCCL_PLACE = "NCCL error in: ProcessGroupNCCL.cpp"


class Failed(Exception):
    """What ends the training, with the rank that shows it first."""

    def __init__(self, text: str, rank: int = 0) -> None:
        self.rank = rank
        super().__init__(text)


@dataclass(frozen=True)
class Rank:
    """One rank: where it runs, and with which options."""

    pod: view.Pod
    options: Namespace


def main(arguments: list[str]) -> int:
    """One rank's process: 2 for a command line that is not understood, else it leaves a call for mpirun."""
    options = metaseq_options.parse(arguments)
    if options.task != "dummy_lm":
        print(f"simulator: metaseq-train is simulated with --task dummy_lm, not {options.task}", file=sys.stderr)
        return 1
    if not ranks.leave_call("metaseq", {"options": vars(options)}):
        print("simulator: metaseq-train is simulated as started by mpirun only", file=sys.stderr)
        return 1
    return 0


def simulate(calls: Sequence[Call], variables: Mapping[str, str], log: Log) -> tuple[int, int]:
    """All ranks at once. Returns the first that failed, and its exit code, or (0, 0)."""
    started = [Rank(call.rank.pod, Namespace(**call.options)) for call in calls]
    try:
        _train(started, variables, log)
    except Failed as error:
        log.line(f"Traceback (most recent call last):\n{error}", error.rank)
        return error.rank, 1
    return 0, 0


def _train(started: Sequence[Rank], variables: Mapping[str, str], log: Log) -> None:
    known = view.load()
    by_rank = _rendezvous(started, known, log)
    options = by_rank[0].options
    devices = _devices(by_rank, variables, known)
    try:
        collective = nccl.initialise(devices, variables, known, log).connect(log)
    except nccl.NcclError as error:
        raise Failed(f"torch.distributed.DistBackendError: {NCCL_PLACE}, {error}, {nccl.VERSION}") from error
    metaseq_log.info(log, "metaseq.distributed.utils", f"initialized host {by_rank[0].pod.hostname} as rank 0")
    _model_parallel(options, len(by_rank))
    _model_options(options)
    model = _model(options, len(by_rank))
    gpu_bytes = min(float(device.gpu["memory_gb"]) for device in devices) * 1e9
    metaseq_log.beginning(log, options, model)
    if short := training.out_of_memory(model.memory(), gpu_bytes):
        raise Failed(f"torch.cuda.OutOfMemoryError: {short}")
    update = model.update(groups_span_nodes=_groups_span_nodes(by_rank, model))
    progress = metaseq_log.Progress(0, 0, 0, model.memory(), gpu_bytes)
    for seconds in _updates(update, collective, devices, variables):
        progress = replace(progress, number=progress.number + 1, seconds=seconds, wall=progress.wall + seconds)
        pause(min(seconds, SECONDS_PER_UPDATE))
        if progress.number % options.log_interval == 0:
            metaseq_log.update(log, options, model, progress)
        if progress.number == options.max_update:
            break
    metaseq_log.end(log, options, progress)


def _updates(
    update: training.Update, collective: Collective, devices: Sequence[nccl.Device], variables: Mapping[str, str]
) -> Iterator[float]:
    """The duration of each update in turn, s, as the hardware is by then. Raises Failed once some of it has gone."""
    numbers = view.numbers()
    environments = nccl.environments([device.pod for device in devices], variables)
    while True:
        known = view.load()
        _still_there(devices, known)
        now = training.at_present(collective, known, environments)
        if any(len(links) < len(before) for links, before in zip(now.links, collective.links, strict=True)):
            raise Failed(f"torch.distributed.DistBackendError: {NCCL_PLACE}, {nccl.REMOTE_ERROR}")
        yield training.seconds(update, now, numbers)


def _rendezvous(started: Sequence[Rank], known: view.View, log: Log) -> list[Rank]:
    """The ranks in order, once all have met at rank 0. Raises Failed for those that wait in vain or are refused."""
    size = {rank.options.distributed_world_size for rank in started}
    wanted = max(size)
    if len(size) > 1 or wanted > len(started):
        raise Failed(f"RuntimeError: {c10d.too_few(len(started), wanted, STORE_TIMEOUT_S)}")
    by_rank: dict[int, Rank] = {}
    for rank in started:
        number = rank.options.distributed_rank
        if number >= wanted or number in by_rank:
            why = "taken already" if number in by_rank else f"not below the world size {wanted}"
            raise Failed(f"ValueError: rank {number} is {why}", number)
        by_rank[number] = rank
    _head(by_rank, known, log)
    first = _shared(by_rank[0].options)
    for number, rank in sorted(by_rank.items()):
        if _shared(rank.options) != first:
            differing = ", ".join(name for name, value in _shared(rank.options).items() if first[name] != value)
            raise Failed(f"simulator: rank {number} has other options than rank 0: {differing}", number)
    return [by_rank[number] for number in range(wanted)]


def _head(by_rank: Mapping[int, Rank], known: view.View, log: Log) -> None:
    """Raises Failed where the address does not lead to rank 0, which goes there too.

    The image's PyTorch (2.1.0a0) is taken to be from before pull request 108191, since which it is a DistNetworkError.
    """
    method = by_rank[0].options.distributed_init_method or ""
    where = urlparse(method)
    if where.scheme not in ("barrierlesstcpr", "tcpr", "tcp") or not where.hostname or not where.port:
        known_ones = "tcp://, tcpr:// and barrierlesstcpr://HOST:PORT are"
        raise Failed(f"simulator: --distributed-init-method {method!r} is not simulated; {known_ones}")
    pod = known.resolve(where.hostname)
    if pod is None and not view.is_address(where.hostname):
        log.line(c10d.unresolved(where.hostname, where.port))
    if pod is None or pod.key != by_rank[0].pod.key:
        after = f"{STORE_TIMEOUT_S}s"
        raise Failed(f"TimeoutError: {c10d.timed_out(where.hostname, where.port, after)}")


def _shared(options: Namespace) -> dict[str, Any]:
    return {name: value for name, value in vars(options).items() if name not in OWN}


def _devices(by_rank: Sequence[Rank], variables: Mapping[str, str], known: view.View) -> list[nccl.Device]:
    devices: list[nccl.Device] = []
    held: dict[tuple[str, int], int] = {}
    for number, rank in enumerate(by_rank):
        gpus = nccl_tests.visible(known.gpus_of(rank.pod), variables)
        index = rank.options.device_id
        if index >= len(gpus):
            what = "no CUDA-capable device is detected" if not gpus else "CUDA error: invalid device ordinal"
            raise Failed(f"RuntimeError: {what}", number)
        if not gpus[index]["healthy"]:
            raise Failed("RuntimeError: CUDA error: unspecified launch failure", number)
        if (other := held.setdefault((rank.pod.key, index), number)) != number:
            what = f"Duplicate GPU detected : rank {number} and rank {other} both on CUDA device {gpus[index]['pci']}"
            raise Failed(f"torch.distributed.DistBackendError: {NCCL_PLACE}, invalid usage. {what}", number)
        devices.append(nccl.Device(Process(number, rank.pod.hostname, 60 + index, index), rank.pod, gpus[index]))
    return devices


def _model_parallel(options: Namespace, size: int) -> None:
    """Megatron's mpu/initialize.py and mpu/utils.py."""
    split = options.model_parallel_size
    for what in (size, options.decoder_attention_heads):
        if what % split:
            raise Failed(f"AssertionError: {what} is not divisible by {split}")


def _model_options(options: Namespace) -> None:
    """What models/transformer_lm.py asserts, as far as it concerns these options."""
    if options.batch_size is None and options.max_tokens is None:
        raise Failed("AssertionError: Must specify batch size either with --max-tokens or --batch-size")
    if options.batch_size is None:
        raise Failed("simulator: --batch-size is simulated, --max-tokens is not")
    if not options.use_sharded_state:
        raise Failed("AssertionError: Use sharded state must be True for tensor parallel")
    if not options.sequence_parallel:
        return
    if options.model_parallel_size == 1:
        raise Failed("AssertionError: --sequence-parallel only works when --model-parallel-size is greater than 1")
    if options.dropout:
        raise Failed("AssertionError: havent yet tested if rng states are correct for dropout with seq_parallel")
    for name in ("checkpoint_activations", "distribute_checkpointed_activations"):
        if getattr(options, name):
            raise Failed(f"AssertionError: Cannot set --{name.replace('_', '-')} with sequence parallel.")


def _model(options: Namespace, gpus: int) -> Model:
    return Model(
        layers=options.decoder_layers,
        width=options.decoder_embed_dim,
        heads=options.decoder_attention_heads,
        vocabulary=options.dict_size + SPECIAL_SYMBOLS,
        sequence=options.tokens_per_sample,
        micro_batch=options.batch_size,
        update_freq=options.update_freq,
        split=options.model_parallel_size,
        gpus=gpus,
        sequence_parallel=options.sequence_parallel,
        checkpointing=options.checkpoint_activations,
        float32_copy=not options.memory_efficient_fp16,
        reshards=not options.no_reshard_after_forward,
    )


def _groups_span_nodes(by_rank: Sequence[Rank], model: Model) -> bool:
    groups = (by_rank[start : start + model.split] for start in range(0, len(by_rank), model.split))
    return any(len({rank.pod.key for rank in group}) > 1 for group in groups)


def _still_there(devices: Iterable[nccl.Device], known: view.View) -> None:
    """Raises Failed when a pod or a GPU has gone since."""
    for device in devices:
        rank, pod = device.process.rank, known.pods.get(device.pod.key)
        if pod is None or not pod.running or not known.node_of(pod)["ready"]:
            raise Failed(f"torch.distributed.DistBackendError: {NCCL_PLACE}, {nccl.REMOTE_ERROR}", rank)
        gpu = next((found for found in known.gpus_of(pod) if found["index"] == device.gpu["index"]), None)
        if gpu is None or not gpu["healthy"]:
            raise Failed("RuntimeError: CUDA error: unspecified launch failure", rank)
