"""How a model size is trained on some nodes: pure arithmetic, and what is said when it does not work out.

GPU memory is the sum of the tensors that metaseq keeps, each with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from config.data.skus import VmSku
from config.schema.pools import MAX_NODES
from workloads._lib.training import GB, flops_per_token, usable_bytes
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


class Unfit(ValueError):
    """Some nodes cannot train a model size as the table has it; the text says why, after "model size 30b"."""


@dataclass(frozen=True)
class Plan:
    """A training whose every update has the table's batch: data_parallel * micro_batch * update_freq sequences."""

    size: ModelSize
    gpus: int
    """All GPUs of all nodes."""
    micro_batch: int
    """Sequences that a model-parallel group works on at once."""
    update_freq: int
    """Micro-batches whose gradients make up one update."""

    @property
    def data_parallel(self) -> int:
        """Copies of the model."""
        return self.gpus // self.size.model_parallel

    @property
    def updates(self) -> int:
        """Updates of the whole training (opt_baselines.py)."""
        return int(models().training_tokens) // self.size.batch

    @property
    def warmup_updates(self) -> int:
        """Updates over which the learning rate rises (opt_baselines.py)."""
        return int(models().warmup_tokens) // self.size.batch

    @property
    def flops_per_token(self) -> float:
        """Floating-point operations that training on one token takes."""
        width, layers = self.size.width, self.size.layers
        weights = 12 * layers * width**2 + models().vocabulary * width
        return flops_per_token(weights=weights, layers=layers, width=width, sequence=models().sequence)


def plan(size: ModelSize, sku: VmSku, nodes: int) -> Plan:
    """The training on `nodes` of one VM size, in micro-batches as large as fit. Raises Unfit."""
    if sku.gpus % size.model_parallel:
        shape = f"is split over {size.model_parallel} GPUs that must be in one node"  # they exchange every activation
        raise Unfit(f"{shape}, and {sku.name} has {sku.gpus}")
    sequences = models().sequences(size)
    if not _divides(size, sku, nodes):
        raise Unfit(f"has batches of {sequences} sequences, which {nodes} nodes cannot share equally")
    gpus = nodes * sku.gpus
    share = sequences * size.model_parallel // gpus
    for micro_batch in range(share, 0, -1):
        if share % micro_batch == 0 and _has_memory(size, sku, gpus, micro_batch):
            return Plan(size, gpus, micro_batch, share // micro_batch)
    raise Unfit(_too_big(size, sku, nodes))


def dividing_nodes(size: ModelSize, sku: VmSku) -> list[int]:
    """Numbers of nodes among which the batch divides, the least first; none where a model does not fit into a node."""
    if sku.gpus % size.model_parallel:
        return []
    return [nodes for nodes in range(1, MAX_NODES + 1) if _divides(size, sku, nodes)]


def _divides(size: ModelSize, sku: VmSku, nodes: int) -> bool:
    return models().sequences(size) % (nodes * sku.gpus // size.model_parallel) == 0


def usable_nodes(size: ModelSize, sku: VmSku) -> list[int]:
    """Those of them that also have the memory."""
    return [nodes for nodes in dividing_nodes(size, sku) if _has_memory(size, sku, nodes * sku.gpus, micro_batch=1)]


def _has_memory(size: ModelSize, sku: VmSku, gpus: int, micro_batch: int) -> bool:
    return bytes_per_gpu(size, gpus=gpus, micro_batch=micro_batch) <= usable_bytes(sku.gpu_memory_gb)


def _too_big(size: ModelSize, sku: VmSku, nodes: int) -> str:
    usable = usable_nodes(size, sku)
    least = f"needs {usable[0]} nodes of {sku.name}" if usable else f"fits no number of {sku.name}"
    needed = bytes_per_gpu(size, gpus=nodes * sku.gpus, micro_batch=1) / GB
    limit = usable_bytes(sku.gpu_memory_gb) / GB
    have = f"{limit:.0f} of its {sku.gpu_memory_gb} GB can be used"
    return f"{least}: with {nodes}, each GPU would need {needed:.0f} GB, and {have}"
