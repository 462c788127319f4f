"""How much memory the loop takes: bf16 weights that stay, LoRA's own, what backward needs of a pack, and some logits.

Without activation checkpointing. Of OPT-1.3b with packs of 16,384 tokens 17.1 GiB were measured
(docs/performance.md); of other shapes it is est.
"""

from __future__ import annotations

from config.facts.language_models import LanguageModel
from config.facts.skus import VmSku
from workloads.ray_finetuning.options import FinetuningOptions

USABLE = 0.92
"""Of a GPU's memory."""
_FROZEN, _LEARNT = 2, 16
"""Bytes of a weight: bf16; or in fp32 with its gradient and two moments."""
_KEPT_WIDTH, _KEPT_KEYS = 10, 4
"""Bytes of a token for each of a layer's width (what both norms take, attention's input, queries and output, in bf16),
and of the width of its keys and values."""
_KEPT_SIGN, _KEPT_GATED = 1, 4
"""Bytes for each of a feed-forward layer's: whether it is positive, or both factors."""
_CHUNK, _LOGIT = 4096, 6
"""Tokens whose logits are there at once (docker/ray-finetuning/finetuning/model.py), and bytes of one of them."""


def bytes_per_gpu(model: LanguageModel, options: FinetuningOptions) -> float:
    """What each GPU needs: all of them have all weights, and a pack of their own."""
    adapted = options.rank * model.layers * (2 * model.width + model.width + model.kv_width)
    per_unit = _KEPT_GATED if model.swiglu else _KEPT_SIGN
    per_layer = _KEPT_WIDTH * model.width + _KEPT_KEYS * model.kv_width + per_unit * model.inner
    logits = min(options.pack, _CHUNK) * model.vocabulary * _LOGIT
    return _FROZEN * model.parameters + _LEARNT * adapted + options.pack * model.layers * per_layer + logits


def usable_bytes(sku: VmSku) -> float:
    """Of each GPU, by the memory that it is sold with."""
    return USABLE * sku.gpu_memory_gb * 1e9


def fits(model: LanguageModel, options: FinetuningOptions, sku: VmSku) -> bool:
    """Whether GPUs of that size hold it."""
    return bytes_per_gpu(model, options) <= usable_bytes(sku)
