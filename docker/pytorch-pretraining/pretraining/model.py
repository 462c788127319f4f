"""A decoder-only transformer with OPT's sizes: pre-norm, learned positions, ReLU, tied embeddings, no biases.

This is fast: ReLU's backward pass needs only ReLU's output, and gradients of biases would be sums over all tokens.
Heads have 128 dimensions, because Hopper's attention kernels are slower with the 64 of OPT.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

from pretraining.shape import Shape

BACKENDS = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""Attention kernels, the best first."""
EPSILON = 1e-5


class Block(nn.Module):
    """Attention, then the feed-forward network, both with a residual connection."""

    recomputes = False
    """Whether backward recomputes the block's activations instead of keeping them."""

    def __init__(self, shape: Shape, linear: type[nn.Linear]) -> None:
        super().__init__()
        self.heads = shape.heads
        width = shape.width
        self.before_attention = nn.Parameter(torch.ones(width))
        self.qkv = linear(width, 3 * width, bias=False)
        self.out = linear(width, width, bias=False)
        self.before_network = nn.Parameter(torch.ones(width))
        self.up = linear(width, 4 * width, bias=False)
        self.down = linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the block's output for `x`, (batch, sequence, width)."""
        return checkpoint(self.computed, x, use_reentrant=False) if self.recomputes else self.computed(x)

    def computed(self, x: Tensor) -> Tensor:
        """Returns the result of `forward`, without checkpointing."""
        batch, sequence, width = x.shape
        normed = functional.rms_norm(x, (width,), self.before_attention, EPSILON)
        qkv = self.qkv(normed).view(batch, sequence, 3, self.heads, width // self.heads)
        query, key, value = (each.transpose(1, 2) for each in qkv.unbind(2))
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, sequence, width))
        normed = functional.rms_norm(x, (width,), self.before_network, EPSILON)
        return x + self.down(functional.relu(self.up(normed)))


class Transformer(nn.Module):
    """Predicts each next token of sequences."""

    def __init__(self, shape: Shape, linear: type[nn.Linear] = nn.Linear) -> None:
        """Builds the model. `linear` is the class of linear layers in blocks. Logits are as precise as the weights."""
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.sequence, shape.width)
        self.blocks = nn.ModuleList(Block(shape, linear) for _ in range(shape.layers))
        self.last = nn.Parameter(torch.ones(shape.width))

    def initialize(self) -> None:
        """Initializes the matrices. All elements of vectors are already 1."""
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=self.spread(name))

    def spread(self, name: str) -> float:
        """Returns the standard deviation of initial values. It is smaller at the end of a residual branch (GPT-2)."""
        deep = name.endswith(("out.weight", "down.weight"))
        return 0.02 / (2 * self.shape.layers) ** 0.5 if deep else 0.02

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Returns the mean loss in nats. Both arguments are token numbers, (batch, sequence)."""
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.loss(x, self.last, self.tokens.weight, targets)

    @staticmethod
    def loss(x: Tensor, scale: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        """Returns the loss of the last block's output."""
        x = functional.rms_norm(x, (x.shape[-1],), scale, EPSILON)
        logits = functional.linear(x.flatten(0, 1), weight)
        return functional.cross_entropy(logits.float(), targets.flatten())


def attention() -> object:
    """Returns the context that selects the attention kernels."""
    return sdpa_kernel(BACKENDS, set_priority=True)
