"""OLMo's training config as the simulated trainer reads it: the plain part of YAML that those files use; overrides."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.sandbox.library.recipe import Failed

FILE_TOKENS = 12_000_000_000
"""What a data file counts as, whatever its size: of OLMo-1B's 3.1T tokens in 249 files."""


@dataclass(frozen=True)
class Config:
    """Settings by dotted name (`model.d_model`); the files of `data.paths`, then those of the evaluations."""

    values: Mapping[str, str]
    files: tuple[str, ...]
    data_files: int
    """How many of the files are the training's."""

    def text(self, name: str, default: str = "") -> str:
        """Empty for null."""
        value = self.values.get(name, default)
        return "" if value == "null" else value

    def number(self, name: str, default: int = 0) -> int:
        return int(float(self.text(name).replace("_", "") or default))

    def yes(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    @property
    def parameters(self) -> tuple[int, int]:
        """All, and those without the input embedding: the shapes of olmo/model.py (sequential blocks with SwiGLU)."""
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
        """In float32, as `fsdp.precision: mixed` keeps them: weights, gradients and AdamW's two moments."""
        return 16 * self.parameters[0]

    @property
    def arithmetic_per_token(self) -> float:
        """Operations for a token: the output's weights take part also where they are the embedding's."""
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
        """`max_duration`: steps, tokens (`2e12T`) or epochs (`1ep`)."""
        duration = self.text("max_duration").replace("_", "")
        if duration.endswith("ep"):
            return int(duration[:-2]) * self.data_files * FILE_TOKENS // self.tokens_per_step
        if duration.endswith("T"):
            return math.ceil(int(float(duration[:-1])) / self.tokens_per_step)
        return int(float(duration))


def load(path: Path, overrides: Iterable[str], known: Sequence[str]) -> Config:
    """Raises Failed for an override that OLMo does not know, and OSError."""
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
    """Scalars down to the second level, and the lists of files."""
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
