"""A decoder-only transformer, of OPT's sizes: pre-norm, learned positions, ReLU, tied embeddings, and no biases.

ReLU and the lack of biases are for speed: what backward needs of the first is its output alone, and the second saves
reductions over all tokens. Heads have 128 dimensions, which Hopper's attention kernels run faster than OPT's 64.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

from pretraining.shape import Shape

BACKENDS = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""In this order: the first that can is taken."""
EPSILON = 1e-5


class Block(nn.Module):
    """Attention, then the feed-forward network, each added to what it is given."""

    recomputes = False
    """Whether backward computes anew what is in the block, in place of keeping it."""

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
        """`x` is (batch, sequence, width)."""
        return checkpoint(self.computed, x, use_reentrant=False) if self.recomputes else self.computed(x)

    def computed(self, x: Tensor) -> Tensor:
        """What `forward` returns."""
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
        """`linear` makes the layers of blocks; the last, of logits, is always of the weights' own precision."""
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.sequence, shape.width)
        self.blocks = nn.ModuleList(Block(shape, linear) for _ in range(shape.layers))
        self.last = nn.Parameter(torch.ones(shape.width))

    def initialize(self) -> None:
        """Fills in the matrices; vectors are ones from the beginning."""
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=self.spread(name))

    def spread(self, name: str) -> float:
        """Of a matrix's first values: what is added to the residual is scaled down by depth (GPT-2's rule)."""
        deep = name.endswith(("out.weight", "down.weight"))
        return 0.02 / (2 * self.shape.layers) ** 0.5 if deep else 0.02

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """The mean loss in nats. Both are (batch, sequence), of token numbers."""
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.loss(x, self.last, self.tokens.weight, targets)

    @staticmethod
    def loss(x: Tensor, scale: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        """Of what the last block returned."""
        x = functional.rms_norm(x, (x.shape[-1],), scale, EPSILON)
        logits = functional.linear(x.flatten(0, 1), weight)
        return functional.cross_entropy(logits.float(), targets.flatten())


def attention() -> object:
    """The context in which the model runs."""
    return sdpa_kernel(BACKENDS, set_priority=True)
