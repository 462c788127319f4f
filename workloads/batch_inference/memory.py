"""Estimates whether a model and its concurrent prompts fit into memory: weights and key-value cache."""

from __future__ import annotations

from config.data.skus import VmSku
from workloads._lib.training import GB
from workloads.batch_inference.options import BatchInferenceOptions

UTILIZATION = 0.92
"""vLLM's default share of a GPU's memory (v0.33.0, vllm/config/cache.py, gpu_memory_utilization)."""
OVERHEAD = 4e9
"""Estimated bytes on each GPU for activations, CUDA graphs and NCCL."""


def usable_bytes(sku: VmSku) -> float:
    return UTILIZATION * sku.gpu_memory_gb * GB - OVERHEAD


def weight_bytes(options: BatchInferenceOptions, gpus: int) -> float:
    return options.facts.weight_bytes / gpus if options.facts else 0


def cache_bytes(options: BatchInferenceOptions, gpus: int) -> int:
    at_once = min(options.concurrency, options.prompts)
    return at_once * options.longest * options.facts.kv_bytes(gpus) if options.facts else 0


def needed_bytes(options: BatchInferenceOptions, gpus: int) -> float:
    return weight_bytes(options, gpus) + cache_bytes(options, gpus)


def fits(options: BatchInferenceOptions, sku: VmSku, gpus: int) -> bool:
    return needed_bytes(options, gpus) <= usable_bytes(sku)


def shares(options: BatchInferenceOptions, gpus: int) -> bool:
    """Returns whether the GPUs can share the model: each GPU has whole heads, and whole key heads or a copy of one.

    vLLM v0.33.0: vllm/config/model.py, verify_with_parallel_config; model_executor/models/llama.py, LlamaAttention.
    """
    model = options.facts
    if model is None:
        return True
    return model.heads % gpus == 0 and (model.kv_heads % gpus == 0 or gpus % model.kv_heads == 0)


def too_long(options: BatchInferenceOptions) -> bool:
    return options.facts is not None and options.tokens > options.facts.context


def most_at_once(options: BatchInferenceOptions, sku: VmSku, gpus: int) -> int:
    if options.facts is None:
        return options.concurrency
    room = usable_bytes(sku) - weight_bytes(options, gpus)
    return max(0, int(room // (options.longest * options.facts.kv_bytes(gpus))))
