"""Parses OLMo's training config for the simulated trainer: the plain YAML that these files use, and overrides."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.sandbox.library.recipe import Failed

FILE_TOKENS = 12_000_000_000
"""The assumed tokens of any data file: OLMo-1B has 3.1T tokens in 249 files."""


@dataclass(frozen=True)
class Config:
    """Settings by dotted name (`model.d_model`), and the files of `data.paths`, then those of the evaluations."""

    values: Mapping[str, str]
    files: tuple[str, ...]
    data_files: int
    """The number of files of the training."""

    def text(self, name: str, default: str = "") -> str:
        """Returns the setting, or an empty text for null."""
        value = self.values.get(name, default)
        return "" if value == "null" else value

    def number(self, name: str, default: int = 0) -> int:
        return int(float(self.text(name).replace("_", "") or default))

    def yes(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    @property
    def parameters(self) -> tuple[int, int]:
        """All parameters, and those without the input embedding: the shapes of olmo/model.py (sequential, SwiGLU)."""
        width, layers = self.number("model.d_model"), self.number("model.n_layers")
        hidden = self.number("model.mlp_hidden_size") or self.number("model.mlp_ratio") * width
        norm = width if self.yes("model.layer_norm_with_affine") else 0
        of_queries_and_keys = 2 * width if self.yes("model.attention_layer_norm_with_affine") else 0
        layer = 4 * width**2 + width * hidden + hidden // 2 * width + 2 * norm + of_queries_and_keys
        embedding = self.number("model.embedding_size") * width
        output = 0 if self.yes("model.weight_tying") else embedding
        without = layers * layer + norm + output
        return without + embedding, without

    @property
    def state_bytes(self) -> int:
        """Weights, gradients and AdamW's two moments in float32, as with `fsdp.precision: mixed`."""
        return 16 * self.parameters[0]

    @property
    def arithmetic_per_token(self) -> float:
        """Operations for a token. The output's weights count even if they are the embedding's."""
        everything, without = self.parameters
        weights = everything if self.yes("model.weight_tying") else without
        return 6 * weights + 12 * self.number("model.n_layers") * self.number("model.d_model") * self.sequence_length

    @property
    def sequence_length(self) -> int:
        return self.number("model.max_sequence_length")

    @property
    def tokens_per_step(self) -> int:
        return self.number("global_train_batch_size") * self.sequence_length

    @property
    def max_steps(self) -> int:
        """Steps from `max_duration`, which has steps, tokens (`2e12T`) or epochs (`1ep`)."""
        duration = self.text("max_duration").replace("_", "")
        if duration.endswith("ep"):
            return int(duration[:-2]) * self.data_files * FILE_TOKENS // self.tokens_per_step
        if duration.endswith("T"):
            return math.ceil(int(float(duration[:-1])) / self.tokens_per_step)
        return int(float(duration))


def load(path: Path, overrides: Iterable[str], known: Sequence[str]) -> Config:
    """Loads a config. Raises OSError, and Failed for an override that OLMo does not know."""
    values, data, evaluation = _parse(path.read_text())
    for word in overrides:
        # `--name=value` or `--name`, as `clean_opt` of olmo/util.py reads them
        name, equals, value = word.partition("=")
        name = name.strip("-").replace("-", "_")
        if name.partition(".")[0] not in known:
            where = f"\n    full_key: {name}\n    object_type=TrainConfig"
            raise Failed(f"OLMoConfigurationError: Key '{name}' not in 'TrainConfig'{where}")
        for below in [found for found in values if found.startswith(f"{name}.")]:
            del values[below]  # a section set to null
        values[name] = value if equals else "true"
    run_name = values.get("run_name", "")
    values = {name: value.replace("${run_name}", run_name) for name, value in values.items()}
    return Config(values, (*data, *evaluation), len(data))


def _parse(text: str) -> tuple[dict[str, str], list[str], list[str]]:
    """Returns scalars down to the second level, and the lists of files."""
    values: dict[str, str] = {}
    files: dict[str, list[str]] = {"data": [], "evaluators": []}
    section = ""
    for line in text.splitlines():
        bare = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        if entry := re.match(r"([a-z_]+):\s*(.*)$", bare):
            section = entry[1]
            values[section] = entry[2]
        elif entry := re.match(r"  ([a-z_]+):\s+(.+)$", bare):
            values[f"{section}.{entry[1]}"] = entry[2]
        elif section in files and (entry := re.match(r"\s*- (\S+\.npy)$", bare)):
            files[section].append(entry[1])
    return values, files["data"], files["evaluators"]
