"""Calculates the GPU memory of an OLMo training as the sum of its tensors.

The numbers are from allenai/OLMo 59a53e3 with its configs. These have no activation checkpointing. Only OLMo-7B is
compiled, which saves memory. AI2's scripts for OLMo2 confirm the numbers. For micro-batches of 2, they recompute one
layer in four with 7B (configs/peteish7-google.yaml), and one in two with 13B (scripts/augusta/peteish13.sh). Without
recomputation, 13B has micro-batches of 1 and is compiled (scripts/beaker/peteish/peteish13-medlr.sh).
"""

from __future__ import annotations

from config.data.skus import VmSku
from workloads._lib.training import usable_bytes
from workloads.olmo.configs import TrainingConfig
from workloads.olmo.options import OlmoOptions

STATE_BYTES = 16
"""Bytes per parameter, all in float32: weight 4, gradient 4, AdamW's two moments 8.

All configs have `fsdp.precision: mixed`: FSDP computes in bf16, but keeps weights and reduces gradients in float32
(olmo/config.py, fsdp_precision; torch's MixedPrecision).
"""


def micro_batch(options: OlmoOptions, size: VmSku, nodes: int) -> int:
    """Returns the option `microBatch`. If it is unset, returns the largest micro-batch that fits in memory, divides the
    batch, and is at most the one in OLMo's config.

    If none fits, returns the smallest that divides the batch. If none divides it, returns the one in OLMo's config. The
    micro-batch does not change the results, because gradients are accumulated.
    """
    training = options.training
    if options.micro_batch:
        return options.micro_batch
    shared = [each for each in range(training.micro_batch, 0, -1) if training.fits(nodes * size.gpus, each)]
    held = [each for each in shared if holds(training, size, nodes, each)]
    return next(iter([*held, *reversed(shared), training.micro_batch]))


def holds(training: TrainingConfig, size: VmSku, nodes: int, at_once: int) -> bool:
    needed = bytes_per_gpu(training, gpus=nodes * size.gpus, micro_batch=at_once)
    return needed <= usable_bytes(size.gpu_memory_gb)


def state_bytes_per_gpu(training: TrainingConfig, gpus: int) -> float:
    return STATE_BYTES * training.parameters / gpus


def bytes_per_gpu(training: TrainingConfig, *, gpus: int, micro_batch: int) -> float:
    """Returns the peak memory in bytes of one of `gpus` GPUs that train the model, each with `micro_batch` sequences.

    The peak is at the loss, before any layer's activations are freed. Accumulated gradients need no additional memory.
    """
    tokens = training.sequence_length * micro_batch
    activations = tokens * training.layers * _kept_of_layer(training)
    logits = tokens * training.vocabulary * _logit_bytes(training)
    return state_bytes_per_gpu(training, gpus) + activations + logits + _gathered_bytes(training)


def _kept_of_layer(training: TrainingConfig) -> int:
    """Returns the bytes per token and layer that autograd keeps for the backward pass (olmo/model.py,
    OLMoSequentialBlock).

    Bytes for each unit of the width, with two bytes per number:
    - attention: projected q, k and v 6, rotated q and k 4, flash attention's output 2
    - LayerNorm before the parts (in float32 under autocast): each of two norms keeps its input 4 and output 2;
      `clip_qkv` works in place and keeps its input 6
    - RMSLayerNorm after the parts: each of two norms, and those of q and k, keeps its input as float32 4 and the
      normalised input 2; the inputs of the layer's two parts are 4
    - feed-forward: both projected halves, the activated gate and the product, each half as wide
    """
    attention = 6 + 4 + 2
    before, after = 2 * (4 + 2) + 6 * training.clips, 4 * (4 + 2) + 4
    around = after if training.rms_norms else before
    return (attention + around) * training.width + (2 + 1 + 1) * training.hidden


def _logit_bytes(training: TrainingConfig) -> int:
    """Returns the bytes of one logit at the loss: a bf16 copy, and one without the last logits of each sequence
    (olmo/train.py, model_forward).

    A fused loss keeps nothing else, because its gradient replaces the first copy. Otherwise autocast adds float32
    copies of the logits and of the softmax (cross_entropy_loss).
    """
    return 4 if training.rms_norms else 12


def _gathered_bytes(training: TrainingConfig) -> int:
    """Returns the bytes that FSDP has gathered in bf16: embedding and output, or all weights if layers are not wrapped.

    The backward pass gathers a layer and its gradients after the logits are freed, and needs about as many bytes.
    """
    return 2 * (2 * training.width * training.vocabulary if training.wrapped else training.parameters)
