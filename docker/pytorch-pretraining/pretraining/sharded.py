"""AdamW for a sharded model: each GPU has a share of weights in fp32, gradients and moments (FSDP2, arXiv:2304.11277).

A block's weights are gathered in bf16 when needed. Its gradients are reduced in fp32 after each micro-batch. This is
slower than `MasterAdamW`. Use it if a model's weights and gradients do not fit on each GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

from pretraining.model import Transformer
from pretraining.optimizer import Segments, places, world

_POLICY = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)


class ShardedAdamW:
    """An optimizer with the methods of `MasterAdamW`. Both read each other's checkpoints."""

    def __init__(
        self,
        model: Transformer,
        device: torch.device,
        *,
        betas: tuple[float, float] = (0.9, 0.95),
        decay: float = 0.1,
    ) -> None:
        """Shards `model`, initializes this process's share, and compiles the blocks if they run on a GPU.

        `model` has no memory yet, because it may be too large for one GPU.
        """
        _shard(model, device)
        model.to_empty(device=device)
        self._parameters = list(model.parameters())
        self._starts = [start for start, _ in places(self._parameters)]
        self._fill(model, device)
        groups = [
            {
                "params": [each for each in self._parameters if (each.dim() > 1) == matrix],
                "weight_decay": decay * matrix,
            }
            for matrix in (True, False)
        ]
        self._adam = torch.optim.AdamW(groups, betas=betas, fused=True)
        for each in self._parameters:
            moments = {"exp_avg": torch.zeros_like(each), "exp_avg_sq": torch.zeros_like(each)}
            self._adam.state[each] = {"step": torch.zeros((), device=device), **moments}
        self.steps = 0

    def _fill(self, model: Transformer, device: torch.device) -> None:
        """Initializes weights as in an unsharded bf16 model. Each process generates all numbers and keeps its share."""
        for name, each in model.named_parameters():
            values = torch.ones(each.numel(), device=device)
            if each.dim() > 1:
                values.normal_(std=model.spread(name))
            mine, first = _local(each.data), self._first(each, 0)
            mine.copy_(values[first : first + mine.numel()].view_as(mine).bfloat16())

    def state(self) -> Mapping[str, Segments]:
        """Returns this process's share of a checkpoint, by name."""
        states = [{"masters": each.data, **self._adam.state[each]} for each in self._parameters]
        starts = [self._first(each, start) for each, start in zip(self._parameters, self._starts, strict=True)]
        names = {"masters": "masters", "mean": "exp_avg", "square": "exp_avg_sq"}
        return {
            name: [(start, _local(state[theirs])) for start, state in zip(starts, states, strict=True)]
            for name, theirs in names.items()
        }

    def _first(self, parameter: nn.Parameter, start: int) -> int:
        """Returns the number of this process's first element. Shares have equally many rows, the last shares fewer."""
        rank, processes = world()
        rows = parameter.shape[0]
        piece = -(-rows // processes)
        return start + min(rank * piece, rows) * (parameter.numel() // rows)

    def restore(self, steps: int) -> None:
        """Sets the number of steps, after the caller has copied a checkpoint into `state`."""
        self.steps = steps
        for each in self._parameters:
            self._adam.state[each]["step"].fill_(steps)

    def step(self, rate: float, scale: float, clip: float = 1.0) -> Tensor:
        """Updates the weights. Multiplies gradients by `scale`, and clips their norm. Returns the unclipped norm."""
        self.steps += 1
        gradients = [_local(cast("Tensor", each.grad)) for each in self._parameters]
        squares = torch.stack(torch._foreach_norm(gradients)).square().sum()  # as torch clips
        distributed.all_reduce(squares)
        norm = squares.sqrt() * scale
        torch._foreach_mul_(gradients, scale * (clip / (norm + 1e-6)).clamp(max=1.0))
        for group in self._adam.param_groups:
            group["lr"] = rate
        self._adam.step()
        self._adam.zero_grad()
        return norm


def _shard(model: Transformer, device: torch.device) -> None:
    """Shards the model. Compiles only functions in which no hooks of FSDP run."""
    if device.type == "cuda":
        for block in model.blocks:
            block.computed = torch.compile(block.computed, fullgraph=True)
        model.loss = torch.compile(model.loss, fullgraph=True)
    mesh = init_device_mesh(device.type, (world()[1],))
    for module in (*model.blocks, model):
        sharded = fully_shard(module, mesh=mesh, mp_policy=_POLICY)
        sharded.set_gradient_divide_factor(1.0)  # because `step` scales
        sharded.set_force_sum_reduction_for_comms(True)  # gloo has no other reduction


def _local(tensor: Tensor) -> Tensor:
    return cast("DTensor", tensor).to_local()
