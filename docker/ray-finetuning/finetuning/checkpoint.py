"""Saves checkpoints. A checkpoint is one small file with LoRA's weights and the optimizer's state."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from finetuning import folders


class Checkpoints:
    """A training's checkpoints, in a folder that all processes share."""

    def __init__(self, folder: Path, about: Mapping[str, Any], keep: int = 2) -> None:
        """`about` describes the training. Only checkpoints with the same `about` can be loaded."""
        self.folder, self.about, self.keep = folder, dict(about), keep

    def save(self, steps: int, weights: Mapping[str, Tensor], optimizer: torch.optim.Optimizer, before: float) -> None:
        """Saves a checkpoint. Only one process may call this. `before` is the loss before training."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = folders.unfinished(self.folder, steps)
        state = {"about": self.about, "steps": steps, "before": before}
        torch.save({**state, "weights": dict(weights), "optimizer": optimizer.state_dict()}, file)
        folders.finish(file, self.keep)

    def load(self, weights: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer) -> tuple[int, float | None]:
        """Restores the newest checkpoint. Returns its steps and `before`, or (0, None). Raises CheckpointError."""
        complete = folders.complete(self.folder)
        if not complete:
            return 0, None
        device = next(iter(weights.values())).device
        state = torch.load(complete[-1], map_location=device, weights_only=True)
        folders.check(complete[-1], state["about"], self.about)
        with torch.no_grad():
            for name, parameter in weights.items():
                parameter.copy_(state["weights"][name])
        optimizer.load_state_dict(state["optimizer"])
        return int(state["steps"]), float(state["before"])
