"""Checks of the fine-tuning's options and placement, before deployment.

Memory is the sum of frozen bf16 weights, LoRA's parameters, the activations of a pack without checkpointing, and some
logits. OPT-1.3b with packs of 16,384 tokens was measured: 17.1 GiB (docs/performance.md). All other values are
estimates.
"""

from __future__ import annotations

from collections.abc import Iterator

from config.data.language_models import LanguageModel, language_models
from config.data.skus import VmSku
from config.problems.errors import Problem
from config.problems.fixes import Path, set_command
from config.schema.workload import Candidate
from workloads._lib.hugging_face import model_problems
from workloads._lib.team import (
    Way,
    bf16_sizes,
    gpu_problems,
    operator_problems,
    other_pool,
    quota_problems,
    scheduler_problems,
    team_problems,
    too_large,
)
from workloads._lib.team_training import DATA, batch_problems, storage_problems, usable_bytes
from workloads._lib.training import GB
from workloads.ray_finetuning.options import NAME, SYNTHETIC, FinetuningOptions

_DEFAULT = FinetuningOptions.model_fields["model"].default
_OPTIONS: Path = ("workloadOptions", NAME)
_LEAST_PACK = 512
_FROZEN, _LEARNT = 2, 16
"""Bytes of a frozen weight in bf16, and of a trained weight in fp32 with gradient and two moments."""
_KEPT_WIDTH, _KEPT_KEYS = 10, 4
"""Bytes of a token per unit of a layer's width (inputs of both norms and of attention, queries, and output, in bf16),
and per unit of the width of the layer's keys and values.
"""
_KEPT_SIGN, _KEPT_GATED = 1, 4
"""Bytes of a token per unit of a feed-forward layer: the sign (ReLU), or both factors (gated)."""
_CHUNK, _LOGIT = 4096, 6
"""Tokens with logits in memory (docker/ray-finetuning/finetuning/model.py), and bytes per logit."""


def problems(options: FinetuningOptions, candidate: Candidate) -> Iterator[Problem]:
    gpus = candidate.nodes * options.gpus_on(candidate.pool.sku)
    yield from team_problems(NAME, options, candidate)
    yield from scheduler_problems(NAME, candidate)
    yield from operator_problems(NAME, candidate, {"kuberay": ("is a RayJob", f"a stack without {NAME}")})
    yield from gpu_problems(NAME, candidate)
    yield from _model(options)
    yield from _lengths(options)
    yield from _evaluation(options)
    yield from _memory(options, candidate)
    yield from batch_problems(NAME, options.packs(gpus), "packs", options, candidate)
    yield from quota_problems(NAME, options, candidate)
    yield from storage_problems(NAME, options.data_container, options.checkpoint_container, options, candidate)


def _model(options: FinetuningOptions) -> Iterator[Problem]:
    where: Path = (*_OPTIONS, "model")
    if options.model.startswith(f"{DATA}/") and not options.data_container:
        what = f"is {options.model}, a folder of dataContainer, but dataContainer is not set"
        allowed = "a name on the Hugging Face Hub, or a folder if dataContainer is set"
        yield Problem(where, what, allowed, set_command(where, _DEFAULT))
    yield from model_problems(NAME, options.model, options.hugging_face_token)


def _lengths(options: FinetuningOptions) -> Iterator[Problem]:
    where: Path = (*_OPTIONS, "longest")
    if options.known and options.longest > options.known.context:
        most = options.known.context
        what = f"is {options.longest} tokens, but the context of {options.model} is {most}"
        yield Problem(where, what, f"1 to {most}", set_command(where, min(most, options.pack)))
    elif options.longest > options.pack:
        what = f"is {options.longest} tokens, more than a pack of {options.pack} can hold"
        yield Problem(where, what, f"1 to {options.pack}, or larger packs", set_command(where, options.pack))


def _evaluation(options: FinetuningOptions) -> Iterator[Problem]:
    if options.data_container is None and options.evaluation >= SYNTHETIC:
        where: Path = (*_OPTIONS, "evaluation")
        default = FinetuningOptions.model_fields["evaluation"].default
        what = f"is {options.evaluation}, but without dataContainer there are only {SYNTHETIC} examples in total"
        yield Problem(where, what, f"0 to {SYNTHETIC - 1}", set_command(where, default))


def _memory(options: FinetuningOptions, candidate: Candidate) -> Iterator[Problem]:
    """Yields a problem with memory. More GPUs do not help, because each GPU has the whole model."""
    model, sku = options.known, candidate.pool.sku
    if model is None or not sku.gpu_bf16_tflops or fits(model, options, sku):
        return
    ways = [
        *_smaller_packs(model, options, candidate),
        *_on_other_gpus(model, options),
        *_smaller(options, candidate),
    ]
    where: Path = (*_OPTIONS, "model")
    needed = bytes_per_gpu(model, options) / GB
    what = (
        f"is {options.model}, which needs about {needed:.0f} GB with packs of {options.pack} tokens, but only "
        f"{usable_bytes(sku) / GB:.0f} of the {sku.gpu_memory_gb} GB of {sku.gpu_model} are usable"
    )
    yield too_large(where, what, ways, advice="a smaller model, or smaller packs", smallest=_DEFAULT)


def _smaller_packs(model: LanguageModel, options: FinetuningOptions, candidate: Candidate) -> Iterator[Way]:
    size = 1 << (options.pack - 1).bit_length() - 1
    while size >= max(options.longest, _LEAST_PACK):
        if fits(model, options.model_copy(update={"pack": size}), candidate.pool.sku):
            yield f"packs of at most {size} tokens", set_command((*_OPTIONS, "pack"), size)
            return
        size //= 2


def _on_other_gpus(model: LanguageModel, options: FinetuningOptions) -> Iterator[Way]:
    able = [size.name for size in bf16_sizes() if fits(model, options, size)]
    yield from other_pool((*_OPTIONS, "model"), able)


def _smaller(options: FinetuningOptions, candidate: Candidate) -> Iterator[Way]:
    fitting = [
        name
        for name, model in language_models().items()
        if not model.gated and fits(model, options, candidate.pool.sku)
    ]
    if fitting:
        yield f"a model of {', '.join(fitting)}", set_command((*_OPTIONS, "model"), fitting[-1])


def bytes_per_gpu(model: LanguageModel, options: FinetuningOptions) -> float:
    adapted = options.rank * model.layers * (2 * model.width + model.width + model.kv_width)
    per_unit = _KEPT_GATED if model.swiglu else _KEPT_SIGN
    per_layer = _KEPT_WIDTH * model.width + _KEPT_KEYS * model.kv_width + per_unit * model.inner
    logits = min(options.pack, _CHUNK) * model.vocabulary * _LOGIT
    return _FROZEN * model.parameters + _LEARNT * adapted + options.pack * model.layers * per_layer + logits


def fits(model: LanguageModel, options: FinetuningOptions, sku: VmSku) -> bool:
    return bytes_per_gpu(model, options) <= usable_bytes(sku)
