"""Linear layers that multiply eight-bit floats: e4m3 in the forward pass, e5m2 for gradients, one scale per tensor.

Scales are computed from current tensors, without a history. Results are bf16. Weights keep their precision.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

FORWARD, BACKWARD = torch.float8_e4m3fn, torch.float8_e5m2


def scaled(x: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Returns `x` in eight bits, and the scale."""
    most = torch.finfo(dtype).max
    scale = x.abs().amax().float().clamp(min=1e-12) / most
    return (x.float() / scale).clamp(-most, most).to(dtype), scale


def product(a: Tensor, b: Tensor, scales: tuple[Tensor, Tensor], *, fast: bool) -> Tensor:
    """Returns `a` (m, k, stored by rows) times `b` (k, n, stored by columns)."""
    return torch._scaled_mm(a, b, scale_a=scales[0], scale_b=scales[1], out_dtype=torch.bfloat16, use_fast_accum=fast)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor) -> Tensor:  # noqa: ANN001
        x8, of_x = scaled(x, FORWARD)
        weight8, of_weight = scaled(weight, FORWARD)
        ctx.save_for_backward(x8.t().contiguous(), of_x, weight8.t().contiguous(), of_weight)
        return product(x8, weight8.t(), (of_x, of_weight), fast=True)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ANN001
        x8, of_x, weight8, of_weight = ctx.saved_tensors
        gradient8, of_gradient = scaled(gradient, BACKWARD)
        of_input = product(gradient8, weight8.t(), (of_gradient, of_weight), fast=False)
        of_weights = product(gradient8.t().contiguous(), x8.t(), (of_gradient, of_x), fast=False)
        return of_input, of_weights


class Linear8(nn.Linear):
    """A layer like `nn.Linear` without a bias."""

    def forward(self, x: Tensor) -> Tensor:
        return _Product.apply(x.flatten(0, -2), self.weight).unflatten(0, x.shape[:-1])
