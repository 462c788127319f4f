"""What training a model costs, by the options of metaseq-train: memory, arithmetic, bytes on the network."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.sandbox.library.training import Update

SPECIAL_SYMBOLS = 4


@dataclass(frozen=True)
class Model:
    """A decoder and how it is trained, from the options of one rank."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    sequence: int
    micro_batch: int
    update_freq: int
    split: int
    """GPUs of a model-parallel group."""
    gpus: int
    sequence_parallel: bool
    checkpointing: bool
    float32_copy: bool
    reshards: bool

    @property
    def copies(self) -> int:
        return self.gpus // self.split

    @property
    def parameters(self) -> int:
        layers = self.layers * (12 * self.width**2 + 13 * self.width)
        return layers + (self.vocabulary + self.sequence + 2) * self.width

    @property
    def sequences(self) -> int:
        """Of one update, over all GPUs."""
        return self.micro_batch * self.update_freq * self.copies

    def memory(self) -> float:
        """Bytes of one GPU at the peak: states, activations, logits, and the layers that are gathered at a time."""
        tokens, width = self.sequence * self.micro_batch, self.width
        states = (16 if self.float32_copy else 12) * self.parameters / self.gpus
        if not self.reshards:
            states += 2 * self.parameters / self.split
        activations = self._activations_of_a_layer() * self.layers
        attention = 6 * self.heads / self.split * self.micro_batch * self.sequence**2
        logits = 10 * tokens * self.vocabulary / self.split
        gathered = (96 * width**2 + 4 * (self.vocabulary + self.sequence) * width) / self.split
        return states + activations + attention + logits + gathered + 44 * tokens * width / self.split

    def update(self, *, groups_span_nodes: bool) -> Update:
        """One update: 6 operations for each weight and token, and attention; every micro-batch gathers weights twice
        (once where they stay) and reduces gradients once.
        """
        tokens = self.sequences * self.sequence
        weights = 12 * self.layers * self.width**2 + self.vocabulary * self.width
        flops = tokens * (6 * weights + 12 * self.layers * self.width * self.sequence)
        passes = 3 if self.reshards else 2
        exchanged = passes * 2 * self.parameters * self.update_freq
        between_ranks = 8 * self.layers * 2 * self.sequence * self.micro_batch * self.width * self.update_freq
        return Update(flops, exchanged, between_ranks if groups_span_nodes else 0)

    def _activations_of_a_layer(self) -> float:
        """Bytes kept for the backward pass: 18 per token and dimension, of which sequence parallelism splits all."""
        tokens = self.sequence * self.micro_batch * self.width
        if self.checkpointing:
            return 2 * tokens
        return 18 * tokens / self.split if self.sequence_parallel else (4 + 14 / self.split) * tokens
