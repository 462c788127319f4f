"""Checks of the pre-training's options and placement, before deployment."""

from __future__ import annotations

from collections.abc import Iterator

from config.data.skus import VmSku, gpu_models
from config.problems.errors import Problem
from config.problems.fixes import Path, either_by_hand, path_text, set_command
from config.schema.workload import Candidate
from workloads._lib.team import (
    WRAPPED,
    Way,
    bf16_sizes,
    gpu_problems,
    most_gpus,
    operator_problems,
    other_pool,
    quota_problems,
    scheduler_problems,
    team_problems,
    too_large,
)
from workloads._lib.team_training import batch_problems, storage_problems, usable_bytes
from workloads._lib.training import GB
from workloads.metaseq.sizes import models
from workloads.pytorch_pretraining.memory import bytes_per_gpu, fits
from workloads.pytorch_pretraining.options import NAME, PretrainingOptions

_OPTIONS: Path = ("workloadOptions", NAME)
_FP8_COMPUTE = (8, 9)
"""The minimum compute capability for FP8 products (PyTorch's torch._scaled_mm)."""


def problems(options: PretrainingOptions, candidate: Candidate) -> Iterator[Problem]:
    yield from team_problems(NAME, options, candidate)
    yield from scheduler_problems(NAME, candidate)
    yield from _operators(options, candidate)
    yield from gpu_problems(NAME, candidate)
    yield from _hardware(options, candidate)
    yield from _memory(options, candidate)
    yield from batch_problems(NAME, options.sequences, "sequences", options, candidate)
    yield from quota_problems(NAME, options, candidate)
    yield from storage_problems(NAME, options.data_container, options.checkpoint_container, options, candidate)


def _operators(options: PretrainingOptions, candidate: Candidate) -> Iterator[Problem]:
    if not candidate.on_shared_platform:
        return
    needs = {"trainingOperator": ("is a PyTorchJob", f"a stack without {NAME}")}
    yield from operator_problems(NAME, candidate, {**needs, **({"appwrapper": WRAPPED} if options.app_wrapper else {})})
    if options.node_check != "off" and not options.app_wrapper:
        path: Path = (*_OPTIONS, "nodeCheck")
        what = f"is {options.node_check}, but pods of a plain PyTorchJob restart on the same node, even if it is bad"
        yield Problem(path, what, "off, or appWrapper: true", set_command((*_OPTIONS, "appWrapper"), True))


def _hardware(options: PretrainingOptions, candidate: Candidate) -> Iterator[Problem]:
    sku = candidate.pool.sku
    if options.fp8 and sku.gpu_bf16_tflops and not _has_fp8(sku):
        able = ", ".join(sorted({size.gpu_model for size in bf16_sizes() if _has_fp8(size)}))
        what = f"is true, but {sku.gpu_model} does not support FP8"
        yield Problem((*_OPTIONS, "fp8"), what, f"false, or {able}", set_command((*_OPTIONS, "fp8"), False))
    if candidate.nodes > 1:
        yield from _between_nodes(options, candidate)


def _between_nodes(options: PretrainingOptions, candidate: Candidate) -> Iterator[Problem]:
    sku, where = candidate.pool.sku, (*_OPTIONS, "numNodes")
    if not sku.infiniband:
        what = f"is {candidate.nodes}, but {sku.name} has no InfiniBand"
        yield Problem(where, what, "1, or a VM size with InfiniBand", set_command(where, 1))
        return
    if options.gpus is not None and options.gpus < sku.gpus:
        what = f"is {options.gpus}, but a job on {candidate.nodes} nodes needs whole nodes to use InfiniBand"
        gpus = (*_OPTIONS, "gpus")
        fix = either_by_hand(gpus, f"set {path_text(where)} to 1")
        yield Problem(gpus, what, "no value, or numNodes 1", fix)
    team = candidate.teams.get(str(options.team))
    if team and not team.pins_memory:
        path: Path = ("teams", str(options.team), "pinsMemory")
        what = f"is false, but workload {NAME} on {candidate.nodes} nodes pins memory for InfiniBand"
        fix = set_command(where, 1) if "pins_memory" in team.model_fields_set else set_command(path, True)
        yield Problem(path, what, "true, or numNodes 1", fix)


def _has_fp8(sku: VmSku) -> bool:
    model = gpu_models().get(sku.gpu_model)
    return model is not None and tuple(map(int, model.compute.split("."))) >= _FP8_COMPUTE


def _memory(options: PretrainingOptions, candidate: Candidate) -> Iterator[Problem]:
    sku = candidate.pool.sku
    gpus = candidate.nodes * options.gpus_on(sku)
    if fits(options, sku, gpus) or not sku.gpu_bf16_tflops:
        return
    ways = [
        *_shorter(options, sku, gpus),
        *_more_gpus(options, candidate),
        *_smaller(options, sku, gpus),
        *_on_other_gpus(options, gpus),
    ]
    needed, usable = bytes_per_gpu(options, gpus) / GB, usable_bytes(sku) / GB
    where: Path = (*_OPTIONS, "modelSize")
    what = (
        f"is {options.model_size}, which needs {needed:.0f} GB on each of {gpus} GPUs for one sequence of "
        f"{options.sequence} tokens, but only {usable:.0f} of the {sku.gpu_memory_gb} GB of {sku.gpu_model} are usable"
    )
    smallest = next(iter(models().sizes))
    yield too_large(where, what, ways, advice="a smaller model, or a shorter sequence", smallest=smallest)


def _shorter(options: PretrainingOptions, sku: VmSku, gpus: int) -> Iterator[Way]:
    usual = type(options).model_fields["sequence"].default
    length = 1 << (options.sequence.bit_length() - 1)
    while length >= usual:
        if length < options.sequence and fits(options.model_copy(update={"sequence": length}), sku, gpus):
            yield f"sequences of at most {length}", set_command((*_OPTIONS, "sequence"), length)
            return
        length //= 2


def _more_gpus(options: PretrainingOptions, candidate: Candidate) -> Iterator[Way]:
    sku = candidate.pool.sku
    most = most_gpus(options, candidate) or 0
    per_node = options.gpus_on(sku)

    def will_do(gpus: int) -> bool:
        return gpus <= most and options.sequences % gpus == 0 and fits(options, sku, gpus)

    for count in range(per_node + 1, sku.gpus + 1):
        if will_do(candidate.nodes * count):
            yield f"{count} GPUs on each node", set_command((*_OPTIONS, "gpus"), count)
            return
    for nodes in range(candidate.nodes + 1, candidate.pool.max_nodes + 1 if sku.infiniband else 0):
        if will_do(nodes * per_node):
            yield f"{nodes} nodes", set_command((*_OPTIONS, "numNodes"), nodes)
            return


def _smaller(options: PretrainingOptions, sku: VmSku, gpus: int) -> Iterator[Way]:
    sizes = [name for name in models().sizes if fits(options.model_copy(update={"model_size": name}), sku, gpus)]
    if sizes:
        yield f"a model of {', '.join(sizes)}", set_command((*_OPTIONS, "modelSize"), sizes[-1])


def _on_other_gpus(options: PretrainingOptions, gpus: int) -> Iterator[Way]:
    able = [size.name for size in bf16_sizes() if fits(options, size, gpus)]
    yield from other_pool((*_OPTIONS, "modelSize"), able)
