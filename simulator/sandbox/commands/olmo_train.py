"""`scripts/train.py` of OLMo under the simulated torchrun, with an invented loss."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from simulator.sandbox.library import olmo_config
from simulator.sandbox.library.recipe import Failed, Values
from simulator.sandbox.library.torch_team import Team, refuse_alone
from simulator.sandbox.library.training import Training

UNSHARDED = "-unsharded"


def main(_: list[str]) -> int:
    return refuse_alone("olmo_train")


def prepare(arguments: list[str], team: Team) -> Values:
    """Reads config and data on each node. Raises Failed."""
    if not arguments:
        raise Failed("OLMoCliError: Usage: scripts/train.py [CONFIG_PATH] [OPTIONS]")
    try:
        config = olmo_config.load(Path(arguments[0]), arguments[1:], team.program["settings"].split())
        for path in (*config.data, *config.evaluation):
            Path(path).stat()
    except OSError as error:
        raise team.uncaught(error) from error
    values = Values(team.program, {**config.settings, "gpus": team.options.nodes * team.options.nproc_per_node})
    values["all_steps"] = config.max_steps(values["tokens"])
    return values


def train(values: Values, team: Team) -> None:
    """Simulates all ranks on the first node. Raises Failed."""
    folder = Path(str(values["save_folder"]).replace("${run_name}", str(values["run_name"])))
    values |= {"host": team.check()[0].hostname, "saved": folder / "config.yaml"}
    values["exists"] = (folder / "config.yaml").is_file()
    values.check()
    last = min(values["stop_at"] or values["all_steps"], values["all_steps"])
    run = Run(values, last, values["tokens"], values["gpus"], team=team, folder=folder)
    ranks = team.connect()

    def seconds() -> float:
        team.check()
        return ranks.seconds(values["flops"])

    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text(f"run_name: {values['run_name']}\n")
        run.restore()
        run.say("begin")
        ranks.check_memory(values["memory"], "torch.OutOfMemoryError")
        run.run(seconds)
    except OSError as error:
        raise team.uncaught(error) from error
    run.say("end")


@dataclass
class Run(Training):
    """A training with sharded checkpoints, `step<n>`, and unsharded checkpoints, `step<n>-unsharded`."""

    team: Team = field(kw_only=True)
    folder: Path = field(kw_only=True)

    def __post_init__(self) -> None:
        self.save_steps = 1  # calls `save` after each step

    def restore(self) -> None:
        """Continues from the latest checkpoint. If the training is new, first saves a checkpoint as a test.

        If a step has both kinds of checkpoints, restores the sharded one (olmo/util.py, find_latest_checkpoint).
        """
        steps = {_step(path): path for path in sorted(self.folder.glob("step*"), reverse=True)}
        if not self.values["try_load_latest_save"] or max(steps, default=-1) < 0:
            self._save(0, "" if self.values["keep_sharded"] else UNSHARDED)
            return
        self.say("restored", checkpoint=steps[max(steps)])
        self.first = min(max(steps), self.last - 1)  # if complete, repeats the last step; OLMo also takes a step

    def save(self, step: int) -> None:
        """Saves the checkpoints that are due. After the last step, always saves one."""
        intervals = {"": self.values["sharded_interval"], UNSHARDED: self.values["unsharded_interval"]}
        due = [kind for kind, interval in intervals.items() if interval and step % interval == 0]
        final = UNSHARDED if self.values["unsharded_interval"] else ""
        for kind in dict.fromkeys((*due, final) if step == self.last else due):
            self._save(step, kind)

    def _save(self, step: int, kind: str) -> None:
        """Writes a checkpoint under a temporary name, then renames it. Raises OSError.

        Only rank 0 creates and renames the folder (olmo/checkpoint.py, _temporary_wd).
        """
        target = self.folder / f"step{step}{kind}"
        partial = target.with_name(f"{target.name}-tmp")
        self.say("saving", announced="pre-train checkpoint" if step == 0 else "checkpoint")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        self.team.show(partial)
        for name in ("model.pt", "optim.pt", "train.pt"):
            (partial / name).write_text(f"simulated: {name} of step {step}\n")
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
        self.team.show(target)
        self.say("saved", checkpoint=target)


def _step(checkpoint: Path) -> int:
    number = checkpoint.name.removeprefix("step").removesuffix(UNSHARDED)
    return int(number) if number.isdigit() else -1
