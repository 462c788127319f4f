"""The size of a model. Needs no torch, like `memory`, `options`, `folders`, `report` and `token_files`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """A model's size. `sequence` is the maximum length of a sequence in tokens."""

    layers: int
    width: int
    heads: int
    vocabulary: int = 51200
    sequence: int = 2048

    @property
    def block_parameters(self) -> int:
        return 12 * self.width**2 + 2 * self.width

    @property
    def parameters(self) -> int:
        return self.layers * self.block_parameters + (self.vocabulary + self.sequence + 1) * self.width

    @property
    def flops_per_token(self) -> int:
        """Operations forward and backward: 6 P + 12 L h s (Chowdhery et al., arXiv:2204.02311, appendix B)."""
        return 6 * self.parameters + 12 * self.layers * self.width * self.sequence
