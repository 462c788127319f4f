"""How much GPU memory a training of OLMo takes: the sum of the tensors that it keeps, each with its reason.

Read off allenai/OLMo 59a53e3 as the configs stand: no activation checkpointing, and no compilation but in OLMo-7B,
which only saves. AI2's own scripts for OLMo2-7B and 13B bear it out: with micro-batches of 2 they recompute one layer
in four, one in two (configs/peteish7-google.yaml, scripts/augusta/peteish13.sh); without, 13B has micro-batches of 1
and is compiled (scripts/beaker/peteish/peteish13-medlr.sh).
"""

from __future__ import annotations

from config.data.skus import VmSku
from workloads._lib.training import usable_bytes
from workloads.olmo.configs import TrainingConfig
from workloads.olmo.options import OlmoOptions

STATE_BYTES = 16
"""Per parameter, all in float32: weight 4, gradient 4, AdamW's two moments 8.

All configs have `fsdp.precision: mixed`, which computes in bf16 but keeps the weights and reduces the gradients in
float32 (olmo/config.py, fsdp_precision; torch's MixedPrecision).
"""


def micro_batch(options: OlmoOptions, size: VmSku, nodes: int) -> int:
    """The one that is asked for. Else the largest, up to the config's, that GPUs of this size share and hold.

    It changes no result: what a GPU does not take at once, it accumulates. Where none will do, the smallest that is
    shared, or the config's.
    """
    training = options.training
    if options.micro_batch:
        return options.micro_batch
    shared = [each for each in range(training.micro_batch, 0, -1) if training.fits(nodes * size.gpus, each)]
    held = [each for each in shared if holds(training, size, nodes, each)]
    return next(iter([*held, *reversed(shared), training.micro_batch]))


def holds(training: TrainingConfig, size: VmSku, nodes: int, at_once: int) -> bool:
    """Whether each GPU has the memory for micro-batches of so many sequences."""
    needed = bytes_per_gpu(training, gpus=nodes * size.gpus, micro_batch=at_once)
    return needed <= usable_bytes(size.gpu_memory_gb)


def state_bytes_per_gpu(training: TrainingConfig, gpus: int) -> float:
    """STATE_BYTES * parameters / gpus: FSDP shards all of them over all GPUs."""
    return STATE_BYTES * training.parameters / gpus


def bytes_per_gpu(training: TrainingConfig, *, gpus: int, micro_batch: int) -> float:
    """Peak of one GPU when `gpus` in all train the model, each on `micro_batch` sequences at once.

    It is there when the loss is computed: no layer's activations are gone yet. Accumulating gradients costs nothing
    more.
    """
    tokens = training.sequence_length * micro_batch
    activations = tokens * training.layers * _kept_of_layer(training)
    logits = tokens * training.vocabulary * _logit_bytes(training)
    return state_bytes_per_gpu(training, gpus) + activations + logits + _gathered_bytes(training)


def _kept_of_layer(training: TrainingConfig) -> int:
    """Bytes of one token in one layer that autograd keeps for the backward pass (olmo/model.py, OLMoSequentialBlock).

    In units of the width, two bytes a number: q, k and v as projected 6, q and k as rotated 4, flash attention's output
    2. Before it (LayerNorm, in float32 under autocast), each of two norms: its input 4 and output 2. `clip_qkv` works
    in place, and so keeps what it clips: 6. After it (RMSLayerNorm), each of two: the input as float32 4, the
    normalised one 2; so also for the norms of q and k; and what goes into the layer's two parts 4. Of the feed-forward
    part: both halves as projected, the activated gate and the product, each half as wide.
    """
    attention = 6 + 4 + 2
    before, after = 2 * (4 + 2) + 6 * training.clips, 4 * (4 + 2) + 4
    around = after if training.rms_norms else before
    return (attention + around) * training.width + (2 + 1 + 1) * training.hidden


def _logit_bytes(training: TrainingConfig) -> int:
    """Bytes of one logit at the loss: in bf16, once more without each sequence's last (olmo/train.py, model_forward).

    Fused, the loss keeps nothing beside, and its gradient takes the first one's place. Else autocast makes float32 of
    it, and so is the softmax (cross_entropy_loss).
    """
    return 4 if training.rms_norms else 12


def _gathered_bytes(training: TrainingConfig) -> int:
    """What FSDP has gathered then, in bf16: embedding and output, or everything where no layer is a unit of its own.

    The backward pass gathers a layer and its gradients when the logits have gone, and takes about as much.
    """
    return 2 * (2 * training.width * training.vocabulary if training.wrapped else training.parameters)
