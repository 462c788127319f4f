"""Whether a model and what it is asked at once fit, before anything runs: weights, and keys and values of tokens."""

from __future__ import annotations

from config.data.skus import VmSku
from workloads._lib.training import GB
from workloads.batch_inference.options import BatchInferenceOptions

UTILIZATION = 0.92
"""Of a GPU's memory that vLLM takes, which is its default (v0.33.0, vllm/config/cache.py, gpu_memory_utilization)."""
OVERHEAD = 4e9
"""Bytes of each GPU for activations, CUDA graphs and NCCL: est."""


def usable_bytes(sku: VmSku) -> float:
    """Of each GPU, by the memory that it is sold with."""
    return UTILIZATION * sku.gpu_memory_gb * GB - OVERHEAD


def weight_bytes(options: BatchInferenceOptions, gpus: int) -> float:
    """On each of `gpus`; 0 for a model of which nothing is known."""
    return options.facts.weight_bytes / gpus if options.facts else 0


def cache_bytes(options: BatchInferenceOptions, gpus: int) -> int:
    """Of all prompts that are answered at once, on each of `gpus`."""
    at_once = min(options.concurrency, options.prompts)
    return at_once * options.longest * options.facts.kv_bytes(gpus) if options.facts else 0


def needed_bytes(options: BatchInferenceOptions, gpus: int) -> float:
    """On each of `gpus`."""
    return weight_bytes(options, gpus) + cache_bytes(options, gpus)


def fits(options: BatchInferenceOptions, sku: VmSku, gpus: int) -> bool:
    """Whether so many GPUs of that size hold it. What nothing is known of is tried."""
    return needed_bytes(options, gpus) <= usable_bytes(sku)


def shares(options: BatchInferenceOptions, gpus: int) -> bool:
    """Whether so many GPUs can share the model: whole heads each, and of keys' heads whole ones or one together.

    vLLM v0.33.0: vllm/config/model.py, verify_with_parallel_config; model_executor/models/llama.py, LlamaAttention.
    """
    model = options.facts
    if model is None:
        return True
    return model.heads % gpus == 0 and (model.kv_heads % gpus == 0 or gpus % model.kv_heads == 0)


def too_long(options: BatchInferenceOptions) -> bool:
    """Whether a prompt and its answer are more than the model can see."""
    return options.facts is not None and options.tokens > options.facts.context


def most_at_once(options: BatchInferenceOptions, sku: VmSku, gpus: int) -> int:
    """Prompts for which there is room beside the weights; 0 where there is none."""
    if options.facts is None:
        return options.concurrency
    room = usable_bytes(sku) - weight_bytes(options, gpus)
    return max(0, int(room // (options.longest * options.facts.kv_bytes(gpus))))
