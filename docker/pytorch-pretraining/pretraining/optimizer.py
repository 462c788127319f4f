"""AdamW in fp32 for a model in bf16. Gradients are accumulated in fp32. Weights are rounded copies of fp32 masters.

All values are in flat tensors. Each GPU keeps and updates its share of masters and moments (ZeRO stage 1,
arXiv:1910.02054). Gradients are reduced and weights are gathered once per update, for any number of micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, distributed, nn

ALIGNED = 64
"""Parameters start at multiples of this number of elements, for fast kernels."""
Segments = Sequence[tuple[int, Tensor]]
"""Parts of a tensor that all processes share: the number of the first element, and the elements."""


def world() -> tuple[int, int]:
    """Returns rank and number of processes."""
    if not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


class MasterAdamW:
    """The optimizer. Accumulates and frees each gradient as soon as backward has computed it, to save memory."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], *, betas: tuple[float, float] = (0.9, 0.95), decay: float = 0.1
    ) -> None:
        theirs = list(parameters)
        where = list(places(theirs))
        rank, processes = world()
        unit = ALIGNED * processes
        self.size = -(-where[-1][1] // unit) * unit
        share = self.size // processes
        self.start, self.stop = rank * share, (rank + 1) * share
        device = theirs[0].device
        self.weights = torch.zeros(self.size, device=device, dtype=theirs[0].dtype)
        decays = torch.zeros(self.size // ALIGNED, device=device)
        for parameter, (start, stop) in zip(theirs, where, strict=True):
            part = self.weights[start : start + parameter.numel()].view_as(parameter)
            parameter.data = part.copy_(parameter.detach())
            decays[start // ALIGNED : stop // ALIGNED] = decay if parameter.dim() > 1 else 0.0
        self.gradients = torch.zeros(self.size, device=device)  # after the original weights are freed
        for parameter, (start, _) in zip(theirs, where, strict=True):
            part = self.gradients[start : start + parameter.numel()].view_as(parameter)
            parameter.register_post_accumulate_grad_hook(_accumulator(part))
        self.masters = self.weights[self.start : self.stop].float()
        self.mean, self.square = torch.zeros_like(self.masters), torch.zeros_like(self.masters)
        self._decays = decays[self.start // ALIGNED : self.stop // ALIGNED].clone()
        self._betas = torch.tensor(betas, device=device)
        self._update = torch.compile(_update) if device.type == "cuda" else _update
        self.steps = 0

    def state(self) -> Mapping[str, Segments]:
        """Returns this process's share of a checkpoint, by name."""
        shares = {"masters": self.masters, "mean": self.mean, "square": self.square}
        return {name: [(self.start, share)] for name, share in shares.items()}

    def restore(self, steps: int) -> None:
        """Sets the weights from the masters, after the caller has copied a checkpoint into `state`."""
        self.steps = steps
        self.weights[self.start : self.stop] = self.masters
        self._gather()

    def step(self, rate: float, scale: float, clip: float = 1.0) -> Tensor:
        """Updates the weights. Multiplies gradients by `scale`, and clips their norm. Returns the unclipped norm."""
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
        mine = self.gradients[self.start : self.stop]
        if world()[1] > 1:
            distributed.reduce_scatter_tensor(mine, self.gradients)
        return mine

    def _gather(self) -> None:
        if world()[1] > 1:
            distributed.all_gather_into_tensor(self.weights, self.weights[self.start : self.stop])


def _accumulator(into: Tensor) -> Callable[[Tensor], None]:
    def accumulate(parameter: Tensor) -> None:
        into.add_(parameter.grad)
        parameter.grad = None

    return accumulate


def places(parameters: Iterable[nn.Parameter]) -> Iterator[tuple[int, int]]:
    """Yields each parameter's start and end in the flat tensor."""
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
