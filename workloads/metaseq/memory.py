"""How much GPU memory a training takes: the sum of the tensors that metaseq keeps, each with its reason."""

from __future__ import annotations

from workloads.metaseq.sizes import ModelSize, models

STATE_BYTES = 12
"""Per parameter with --memory-efficient-fp16: weight 2, gradient 2, Adam's two moments in float32 8.

A float32 copy of the weights, which these jobs do not keep, would make it 16.
"""


def bytes_per_gpu(size: ModelSize, *, gpus: int, micro_batch: int, state_bytes: int = STATE_BYTES) -> float:
    """Peak of one GPU when `gpus` in all train the model, each model-parallel group on `micro_batch` sequences at once.

    Accumulating gradients costs nothing more: with FSDP they are reduced after every micro-batch.
    """
    sequence, vocabulary = models().sequence, models().vocabulary
    width, split = size.width, size.model_parallel
    tokens = sequence * micro_batch
    # FSDP shards each model-parallel part over the data-parallel group, so every GPU has an equal share.
    states = state_bytes * models().parameters(size) / gpus
    # Kept of each layer for the backward pass with sequence parallelism, in fp16: its input, q, k, v, the attention's
    # projection and the first feed-forward product (sequence_parallel_transformer_layer.py, save_for_backward).
    activations = 18 * tokens * width * size.layers / split
    # Scores of one layer's attention, which is computed again in the backward pass.
    attention = 6 * size.heads / split * micro_batch * sequence**2
    # Logits of this GPU's part of the vocabulary, in fp16 and float32, and their gradient.
    logits = 10 * tokens * vocabulary / split
    # Two layers' gathered fp16 weights and gradients, the gathered embedding, and what one layer computes in passing.
    gathered = 96 * width**2 / split + 4 * (vocabulary + sequence) * width / split
    passing = 44 * tokens * width / split
    return states + activations + attention + logits + gathered + passing
