"""Checks of batch inference and its placement, before deployment."""

from __future__ import annotations

from collections.abc import Iterator

from config.data.language_models import language_models
from config.data.skus import VmSku
from config.data.storage_classes import AKS_SHARED_CLASS
from config.problems.errors import Problem
from config.problems.fixes import Path, remove_command, set_command
from config.schema.workload import Candidate
from workloads._lib.hugging_face import model_problems
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
from workloads._lib.training import GB
from workloads.batch_inference.memory import fits, most_at_once, needed_bytes, shares, too_long, usable_bytes
from workloads.batch_inference.options import NAME, BatchInferenceOptions

_OPTIONS: Path = ("workloadOptions", NAME)


def problems(options: BatchInferenceOptions, candidate: Candidate) -> Iterator[Problem]:
    yield from team_problems(NAME, options, candidate)
    yield from scheduler_problems(NAME, candidate)
    yield from operator_problems(NAME, candidate, {"appwrapper": WRAPPED} if options.app_wrapper else {})
    yield from gpu_problems(NAME, candidate)
    yield from model_problems(NAME, options.model, options.hugging_face_token)
    yield from _length(options)
    yield from _shares(options, candidate)
    yield from _memory(options, candidate)
    yield from quota_problems(NAME, options, candidate, able=lambda gpus: shares(options, gpus))
    yield from _cache(options)
    yield from _storage(candidate)


def _cache(options: BatchInferenceOptions) -> Iterator[Problem]:
    model = options.facts
    least = -(-model.weight_bytes // 2**30) if model else 0
    if options.cache_gi is not None and options.cache_gi < least:
        where: Path = (*_OPTIONS, "cacheGi")
        what = f"is {options.cache_gi}, but the weights of {options.model} need {least} GiB"
        yield Problem(where, what, f"{least} or more; the default is large enough", remove_command(where))


def _length(options: BatchInferenceOptions) -> Iterator[Problem]:
    model = options.facts
    if model is None or not too_long(options):
        return
    longer, value = max(
        ("inputLength", options.input_length), ("outputLength", options.output_length), key=lambda each: each[1]
    )
    where: Path = (*_OPTIONS, longer)
    most = model.context - (options.tokens - value)
    if most < 1:
        most = model.context // 2
    both = f"prompt and answer have {options.tokens} tokens together"
    what = f"is {value}: {both}, but the context of {options.model} has {model.context}"
    yield Problem(where, what, f"at most {most}, or another model", set_command(where, most))


def _shares(options: BatchInferenceOptions, candidate: Candidate) -> Iterator[Problem]:
    model = options.facts
    if model is None or shares(options, options.gpus):
        return
    able = [count for count in range(1, candidate.pool.sku.gpus + 1) if shares(options, count)]
    nearest = min(able, key=lambda count: (abs(count - options.gpus), count))
    where: Path = (*_OPTIONS, "gpus")
    heads = f"{model.heads} attention heads and {model.kv_heads} key-value heads"
    what = f"is {options.gpus}, but {options.gpus} GPUs cannot share {options.model} equally: it has {heads}"
    yield Problem(where, what, " or ".join(map(str, able)), set_command(where, nearest))


def _memory(options: BatchInferenceOptions, candidate: Candidate) -> Iterator[Problem]:
    sku, gpus = candidate.pool.sku, options.gpus
    if fits(options, sku, gpus) or not sku.gpu_bf16_tflops or not shares(options, gpus) or too_long(options):
        return
    ways = [
        *_fewer_at_once(options, sku),
        *_more_gpus(options, candidate),
        *_on_other_gpus(options),
        *_smaller(options, sku),
    ]
    needed, usable = needed_bytes(options, gpus) / GB, usable_bytes(sku) / GB
    each = f"each of {gpus} GPUs" if gpus > 1 else "its GPU"
    where: Path = (*_OPTIONS, "model")
    load = f"{options.concurrency} concurrent prompts of {options.tokens} tokens (including the answer)"
    what = (
        f"is {options.model}, which needs {needed:.0f} GB on {each} for {load}, but only {usable:.0f} of the "
        f"{sku.gpu_memory_gb} GB of {sku.gpu_model} are usable"
    )
    smallest = next(iter(language_models()))
    yield too_large(where, what, ways, advice="a smaller model, or shorter prompts", smallest=smallest)


def _fewer_at_once(options: BatchInferenceOptions, sku: VmSku) -> Iterator[Way]:
    if most := most_at_once(options, sku, options.gpus):
        yield f"at most {most} concurrent prompts", set_command((*_OPTIONS, "concurrency"), most)


def _more_gpus(options: BatchInferenceOptions, candidate: Candidate) -> Iterator[Way]:
    sku = candidate.pool.sku
    for count in range(options.gpus + 1, min(sku.gpus, most_gpus(options, candidate) or 0) + 1):
        if shares(options, count) and fits(options, sku, count):
            yield f"{count} GPUs", set_command((*_OPTIONS, "gpus"), count)
            return


def _on_other_gpus(options: BatchInferenceOptions) -> Iterator[Way]:
    able = [size for size in bf16_sizes() if size.gpus >= options.gpus and fits(options, size, options.gpus)]
    yield from other_pool((*_OPTIONS, "model"), [size.name for size in able])


def _smaller(options: BatchInferenceOptions, sku: VmSku) -> Iterator[Way]:
    for name in language_models():
        other = options.model_copy(update={"model": name})
        if shares(other, options.gpus) and fits(other, sku, options.gpus) and not (other.facts and other.facts.gated):
            yield name, set_command((*_OPTIONS, "model"), name)
            return


def _storage(candidate: Candidate) -> Iterator[Problem]:
    if candidate.on_shared_platform and not candidate.shared_class:
        path: Path = ("storage", "sharedClass")
        what = f"is not set, but workload {NAME} stores its model and its results on shared files"
        allowed = f"a StorageClass of shared files, such as {AKS_SHARED_CLASS}"
        yield Problem(path, what, allowed, set_command(path, AKS_SHARED_CLASS))
