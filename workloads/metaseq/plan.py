"""Plans how to train a model size on some nodes, or explains why that is impossible."""

from __future__ import annotations

from dataclasses import dataclass

from config.data.skus import VmSku
from config.schema.pools import MAX_NODES
from workloads._lib.training import GB, flops_per_token, usable_bytes
from workloads.metaseq.sizes import ModelSize, models

STATE_BYTES = 12
"""Bytes per parameter with --memory-efficient-fp16: weight 2, gradient 2, Adam's two moments in float32 8."""


def bytes_per_gpu(size: ModelSize, *, gpus: int, micro_batch: int) -> float:
    """Returns the peak memory in bytes of one of `gpus` GPUs that train the model, with `micro_batch` sequences in each
    model-parallel group.

    Accumulated gradients need no additional memory: FSDP reduces them after every micro-batch.
    """
    sequence, vocabulary = models().sequence, models().vocabulary
    width, split = size.width, size.model_parallel
    tokens = sequence * micro_batch
    # FSDP shards each model-parallel part over the data-parallel group, in equal shares.
    states = STATE_BYTES * models().parameters(size) / gpus
    # Kept in fp16 for the backward pass of each layer, with sequence parallelism: input, q, k, v, the attention's
    # projection and the first feed-forward product (sequence_parallel_transformer_layer.py, save_for_backward).
    activations = 18 * tokens * width * size.layers / split
    # Scores of one layer's attention, recomputed in the backward pass.
    attention = 6 * size.heads / split * micro_batch * sequence**2
    # Logits of this GPU's part of the vocabulary in fp16 and float32, and their gradient.
    logits = 10 * tokens * vocabulary / split
    # Two layers' gathered fp16 weights and gradients, the gathered embedding, and one layer's temporary tensors.
    gathered = 96 * width**2 / split + 4 * (vocabulary + sequence) * width / split
    passing = 44 * tokens * width / split
    return states + activations + attention + logits + gathered + passing


class Unfit(ValueError):
    """Raised if the nodes cannot train the model size. The text is the reason, such as "needs 8 GPUs in one node"."""


@dataclass(frozen=True)
class Plan:
    """A training plan. The model size's batch has data_parallel * micro_batch * update_freq sequences."""

    size: ModelSize
    gpus: int
    micro_batch: int
    """Sequences that a model-parallel group processes together."""
    update_freq: int

    @property
    def data_parallel(self) -> int:
        return self.gpus // self.size.model_parallel

    @property
    def updates(self) -> int:
        """The number of updates of the training (opt_baselines.py)."""
        return int(models().training_tokens) // self.size.batch

    @property
    def warmup_updates(self) -> int:
        """The number of updates until the full learning rate (opt_baselines.py)."""
        return int(models().warmup_tokens) // self.size.batch

    @property
    def flops_per_token(self) -> float:
        width, layers = self.size.width, self.size.layers
        weights = 12 * layers * width**2 + models().vocabulary * width
        return flops_per_token(weights=weights, layers=layers, width=width, sequence=models().sequence)


def plan(size: ModelSize, sku: VmSku, nodes: int) -> Plan:
    """Returns the plan for `nodes` nodes with the largest micro-batches that fit. Raises Unfit."""
    if sku.gpus % size.model_parallel:
        shape = f"needs {size.model_parallel} GPUs in one node"  # these GPUs exchange every activation
        raise Unfit(f"{shape}, but {sku.name} has {sku.gpus}")
    sequences = models().sequences(size)
    if not _divides(size, sku, nodes):
        raise Unfit(f"has batches of {sequences} sequences that {nodes} nodes cannot share equally")
    gpus = nodes * sku.gpus
    share = sequences * size.model_parallel // gpus
    for micro_batch in range(share, 0, -1):
        if share % micro_batch == 0 and _has_memory(size, sku, gpus, micro_batch):
            return Plan(size, gpus, micro_batch, share // micro_batch)
    raise Unfit(_too_big(size, sku, nodes))


def dividing_nodes(size: ModelSize, sku: VmSku) -> list[int]:
    if sku.gpus % size.model_parallel:
        return []
    return [nodes for nodes in range(1, MAX_NODES + 1) if _divides(size, sku, nodes)]


def _divides(size: ModelSize, sku: VmSku, nodes: int) -> bool:
    return models().sequences(size) % (nodes * sku.gpus // size.model_parallel) == 0


def usable_nodes(size: ModelSize, sku: VmSku) -> list[int]:
    return [nodes for nodes in dividing_nodes(size, sku) if _has_memory(size, sku, nodes * sku.gpus, micro_batch=1)]


def _has_memory(size: ModelSize, sku: VmSku, gpus: int, micro_batch: int) -> bool:
    return bytes_per_gpu(size, gpus=gpus, micro_batch=micro_batch) <= usable_bytes(sku.gpu_memory_gb)


def _too_big(size: ModelSize, sku: VmSku, nodes: int) -> str:
    usable = usable_nodes(size, sku)
    least = f"needs {usable[0]} nodes of {sku.name}" if usable else f"does not fit on any number of {sku.name}"
    needed = bytes_per_gpu(size, gpus=nodes * sku.gpus, micro_batch=1) / GB
    limit = usable_bytes(sku.gpu_memory_gb) / GB
    have = f"only {limit:.0f} of its {sku.gpu_memory_gb} GB are usable"
    return f"{least}: with {nodes}, each GPU would need {needed:.0f} GB, but {have}"
