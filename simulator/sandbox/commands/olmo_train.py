"""`scripts/train.py` of OLMo under the simulated torchrun: its checks, log and checkpoints, with an invented loss."""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from simulator.sandbox.library import olmo_config, recipe, training
from simulator.sandbox.library.olmo_config import Config
from simulator.sandbox.library.recipe import Failed
from simulator.sandbox.library.torch_team import Team, refuse_alone
from simulator.sandbox.library.training import Training, Update

KINDS = {
    "sharded": ("checkpoint", "final checkpoint"),
    "unsharded": ("unsharded checkpoint", "final unsharded model checkpoint"),
}
"""Kinds of checkpoints, with OLMo's names of a save during the training and at its end."""


def main(_: list[str]) -> int:
    return refuse_alone("olmo_train")


def prepare(arguments: list[str], team: Team) -> Config:
    """Reads config and data on each node. Raises Failed."""
    if not arguments:
        raise Failed("OLMoCliError: Usage: scripts/train.py [CONFIG_PATH] [OPTIONS]")
    try:
        config = olmo_config.load(Path(arguments[0]), arguments[1:], team.program["settings"].split())
        for path in config.files:
            if path.startswith(("http:", "https:")):
                raise ConnectionError(f"Failed to resolve '{path.split('/')[2]}'")
            Path(path).stat()
    except OSError as error:
        raise team.uncaught(error) from error
    return config


def train(config: Config, team: Team) -> None:
    """Simulates all ranks, on the first node. Raises Failed."""
    pods = team.check()
    gpus = len(pods) * team.launch.options.nproc_per_node
    folder = Path(config.text("save_folder"))
    parameters, without = config.parameters
    values = {
        "host": pods[0].hostname,
        "run_name": config.text("run_name"),
        "load_path": config.text("load_path"),
        "wandb": config.text("wandb.name") or config.text("wandb.project"),
        "batch": config.number("global_train_batch_size"),
        "overwrite": config.yes("save_overwrite"),
        "saved": folder / "config.yaml",
        "exists": (folder / "config.yaml").is_file(),
        "gpus": gpus,
        "all_steps": config.max_steps,
        "parameters": parameters,
        "without": without,
    }
    last = min(config.number("stop_at", config.max_steps + 10), config.max_steps)
    sizes = (last, config.tokens_per_step, gpus)
    played = Run(team.program, *sizes, values=values, config=config, team=team, folder=folder)
    played.say("prepared")
    if text := recipe.refusal(team.program["fails"], values):
        raise Failed(text)
    ranks = team.connect()
    try:
        played.claim_folder()
        played.restore()
        played.say("begin")
        ranks.check_memory(config.state_bytes / gpus, "torch.OutOfMemoryError")
        update = _update(config, gpus)

        def seconds() -> float:
            team.check()
            return ranks.seconds(update)

        training.play(played, seconds)
        played.save_last()
    except OSError as error:
        raise team.uncaught(error) from error
    played.say("end")


def _update(config: Config, gpus: int) -> Update:
    """Returns an update's cost. FSDP gathers weights twice and scatters gradients once per micro-batch, as 2 bytes."""
    micro_batches = config.number("global_train_batch_size") / (gpus * config.number("device_train_microbatch_size"))
    exchanged = 3 * 2 * config.parameters[0] * math.ceil(micro_batches)
    return Update(flops=config.arithmetic_per_token * config.tokens_per_step, exchanged=exchanged)


@dataclass
class Run(Training):
    """A training with its checkpoint folder: `step<n>` are sharded, `step<n>-unsharded` are not."""

    config: Config = field(kw_only=True)
    team: Team = field(kw_only=True)
    folder: Path = field(kw_only=True)
    saved: dict[str, int] = field(default_factory=dict)
    """The last step saved, by kind."""

    def claim_folder(self) -> None:
        """Writes the config into the run's folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{name}: {value}\n" for name, value in self.config.values.items() if value)
        (self.folder / "config.yaml").write_text(text)
        self.say("claimed")

    def restore(self) -> None:
        """Continues from the latest checkpoint. A new training first saves one, to test that it can."""
        found = self._latest() if self.config.yes("try_load_latest_save") else None
        if found is None:
            self._save(0, "sharded" if self._keeps("sharded") else "unsharded", "pre-train checkpoint")
            return
        self.say("restored", checkpoint=found)
        # A training that is at its end already takes another step, as on real Azure.
        self.first = min(_step(found), self.last - 1)

    def saves(self, step: int) -> bool:
        return any(self._due(kind, step) for kind in KINDS)

    def save(self, step: int) -> None:
        for kind, (announced, _) in KINDS.items():
            if self._due(kind, step):
                self._save(step, kind, announced)

    def save_last(self) -> None:
        """Saves the last step, unless it is saved already."""
        kind = "unsharded" if self._setting("unsharded", "save_interval{}") else "sharded"
        if self._keeps(kind) and self.saved.get(kind) != self.last:
            self._save(self.last, kind, KINDS[kind][1])

    def _setting(self, kind: str, name: str, default: int = 0) -> int:
        return self.config.number(name.format("_unsharded" if kind == "unsharded" else ""), default)

    def _keeps(self, kind: str) -> bool:
        return bool(self._setting(kind, "save_num{}_checkpoints_to_keep", -1))

    def _due(self, kind: str, step: int) -> bool:
        interval = self._setting(kind, "save_interval{}")
        return bool(interval) and self._keeps(kind) and step % interval == 0

    def _latest(self) -> Path | None:
        """Returns the latest complete checkpoint, sharded ones first, like `find_latest_checkpoint` of olmo/util.py."""
        whole = [path for path in self.folder.glob("step*") if path.is_dir() and _step(path) >= 0]
        return max(whole, key=lambda path: (_step(path), not path.name.endswith("-unsharded")), default=None)

    def _save(self, step: int, kind: str, announced: str) -> None:
        """Writes a checkpoint under a temporary name, then renames it. Raises OSError.

        Only rank 0 creates and renames the folder, and the others wait for both (olmo/checkpoint.py, _temporary_wd).
        """
        whole = kind == "unsharded"
        target = self.folder / f"step{step}{'-unsharded' if whole else ''}"
        partial = target.with_name(f"{target.name}-tmp")
        self.say("saving", announced=announced)
        shards = ["model/.metadata", "optim/.metadata", *(f"train/rank{rank}.pt" for rank in range(self.gpus))]
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        self.team.show(partial)
        for name in ("model.pt", "optim.pt", "train.pt") if whole else shards:
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            (partial / name).write_text(f"simulated: {name} of step {step}\n")
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
        self.team.show(target)
        self.saved[kind] = step
        self.say("saved", checkpoint=target)


def _step(checkpoint: Path) -> int:
    """Returns the step of a checkpoint, or -1 for other folders."""
    number = checkpoint.name.removeprefix("step").removesuffix("-unsharded")
    return int(number) if number.isdigit() else -1
