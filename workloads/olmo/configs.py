"""OLMo's official training configs, from `configs.yaml`."""

from __future__ import annotations

import functools
import math
from pathlib import Path

import yaml

from config.data.skus import Facts
from workloads._lib.training import flops_per_token

SOURCE_FOLDER = "/opt/OLMo"


class TrainingConfig(Facts):
    """One training config. `configs.yaml` explains the fields."""

    name: str
    path: str
    parameters: int
    looked_up: int
    layers: int
    width: int
    hidden: int
    vocabulary: int
    rms_norms: bool
    clips: bool
    wrapped: bool
    sequence_length: int
    batch: int
    micro_batch: int
    """Sequences that one GPU processes together, unless an option or the memory limits them."""

    @property
    def file(self) -> str:
        return f"{SOURCE_FOLDER}/{self.path}"

    @property
    def flops_per_token(self) -> float:
        weights = self.parameters - self.looked_up
        return flops_per_token(weights=weights, layers=self.layers, width=self.width, sequence=self.sequence_length)

    def fits(self, gpus: int, micro_batch: int) -> bool:
        return self.batch % (gpus * micro_batch) == 0

    def node_counts(self, gpus_per_node: int, micro_batch: int) -> list[int]:
        most = self.batch // (gpus_per_node * micro_batch)
        return [nodes for nodes in range(1, most + 1) if self.fits(nodes * gpus_per_node, micro_batch)]

    def largest_micro_batch(self, gpus: int) -> int | None:
        """Returns the largest divisor of the config's micro-batch that also divides a GPU's share of the batch.

        Returns None if the GPUs cannot share the batch equally.
        """
        return None if self.batch % gpus else math.gcd(self.batch // gpus, self.micro_batch)


@functools.cache
def training_configs() -> dict[str, TrainingConfig]:
    facts = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return {name: TrainingConfig.model_validate({"name": name, **entry}) for name, entry in facts["configs"].items()}
