"""AdamW in fp32 for a model in bf16: gradients are added up in fp32, weights are rounded from fp32 masters.

All of it lies in flat tensors. Each of several GPUs keeps and updates its share of masters and moments (ZeRO's first
stage, arXiv:1910.02054), so that gradients are reduced and weights gathered once for each update, whatever the number
of micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import torch
from torch import Tensor, distributed, nn

ALIGNED = 64
"""Elements: each parameter begins at a multiple of it, as fast kernels want."""


def world() -> tuple[int, int]:
    """Rank and number of processes."""
    if not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


class MasterAdamW:
    """Takes each gradient as soon as backward has made it, so that none is kept twice."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], *, betas: tuple[float, float] = (0.9, 0.95), decay: float = 0.1
    ) -> None:
        theirs = list(parameters)
        places = list(_places(theirs))
        rank, processes = world()
        unit = ALIGNED * processes
        self.size = -(-places[-1][1] // unit) * unit
        share = self.size // processes
        self.start, self.stop = rank * share, (rank + 1) * share
        device = theirs[0].device
        self.weights = torch.zeros(self.size, device=device, dtype=theirs[0].dtype)
        self.gradients = torch.zeros(self.size, device=device)
        masters, decays = torch.zeros(self.size, device=device), torch.zeros(self.size // ALIGNED, device=device)
        for parameter, (start, stop) in zip(theirs, places, strict=True):
            end = start + parameter.numel()
            masters[start:end] = parameter.detach().flatten()
            parameter.data = self.weights[start:end].view_as(parameter)
            decays[start // ALIGNED : stop // ALIGNED] = decay if parameter.dim() > 1 else 0.0
            parameter.register_post_accumulate_grad_hook(_taker(self.gradients[start:end].view_as(parameter)))
        self.weights.copy_(masters)
        self.masters = masters[self.start : self.stop].clone()
        self.mean, self.square = torch.zeros_like(self.masters), torch.zeros_like(self.masters)
        self._decays = decays[self.start // ALIGNED : self.stop // ALIGNED].clone()
        self._betas = torch.tensor(betas, device=device)
        self._update = torch.compile(_update) if device.type == "cuda" else _update
        self.steps = 0

    def state(self) -> Mapping[str, Tensor]:
        """This process's share of what a checkpoint has, by name."""
        return {"masters": self.masters, "mean": self.mean, "square": self.square}

    def restore(self, steps: int) -> None:
        """Once `state` was filled in: weights are of the masters again."""
        self.steps = steps
        self.weights[self.start : self.stop] = self.masters
        self._gather()

    def step(self, rate: float, scale: float, clip: float = 1.0) -> Tensor:
        """One update by gradients times `scale`, clipped to a norm; returns the norm before that."""
        self.steps += 1
        mine = self._reduced()
        squares = mine.square().sum() if mine.device.type == "cpu" else mine.norm().square()
        if world()[1] > 1:
            distributed.all_reduce(squares)
        norm = squares.sqrt() * scale
        numbers = torch.tensor([rate, scale, float(self.steps)]).to(mine.device, non_blocking=True)
        clipped = (clip / (norm + 1e-6)).clamp(max=1.0)
        own = self.weights[self.start : self.stop]
        self._update(own, self.masters, mine, self.mean, self.square, self._decays, self._betas, numbers, clipped)
        self.gradients.zero_()
        self._gather()
        return norm

    def _reduced(self) -> Tensor:
        """The sum of all processes' gradients, of this one's share."""
        mine = self.gradients[self.start : self.stop]
        if world()[1] > 1:
            distributed.reduce_scatter_tensor(mine, self.gradients)
        return mine

    def _gather(self) -> None:
        if world()[1] > 1:
            distributed.all_gather_into_tensor(self.weights, self.weights[self.start : self.stop])


def _taker(into: Tensor) -> Callable[[Tensor], None]:
    def take(parameter: Tensor) -> None:
        into.add_(parameter.grad)
        parameter.grad = None

    return take


def _places(parameters: Iterable[nn.Parameter]) -> Iterator[tuple[int, int]]:
    start = 0
    for parameter in parameters:
        stop = start + -(-parameter.numel() // ALIGNED) * ALIGNED
        yield start, stop
        start = stop


def _update(
    weights: Tensor,
    masters: Tensor,
    gradients: Tensor,
    mean: Tensor,
    square: Tensor,
    decays: Tensor,
    betas: Tensor,
    numbers: Tensor,
    clipped: Tensor,
) -> None:
    rate, scale, steps = numbers.unbind()
    first, second = betas.unbind()
    gradient = gradients * (scale * clipped)
    mean.lerp_(gradient, 1 - first)
    square.lerp_(gradient * gradient, 1 - second)
    direction = (mean / (1 - first**steps)) / ((square / (1 - second**steps)).sqrt() + 1e-8)
    masters.sub_(rate * (direction + decays.repeat_interleave(ALIGNED) * masters))
    weights.copy_(masters)
