"""What OLMo's trainer writes to a pod's log, and the checkpoints that it leaves."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path

from simulator.sandbox.library.olmo_config import Config


class Log:
    """The log of rank 0, as olmo/util.py formats it where there is no terminal."""

    def __init__(self, host: str) -> None:
        self._host = host

    def info(self, where: str, text: str) -> None:
        """`where` is logger and line, as in `train:93`."""
        self._write(where, "INFO", text)

    def critical(self, where: str, text: str) -> None:
        self._write(where, "CRITICAL", text)

    def step(self, step: int, last: int, metrics: Mapping[str, float]) -> None:
        """The numbers of one step."""
        lines = [f"    {name}={_number(value)}" for name, value in metrics.items()]
        self.info("olmo.train:979", "\n".join([f"[step={step}/{last},epoch=0]", *lines]))

    def _write(self, where: str, level: str, text: str) -> None:
        now = datetime.now().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        print(f"{now}\t{self._host}:0\t{where}\t{level}\t{text}", flush=True)


class Checkpoints:
    """The folder of a run: `step<n>` are sharded, `step<n>-unsharded` whole."""

    def __init__(self, config: Config, ranks: int, log: Log, seen_by_all: Callable[[Path], None]) -> None:
        """`seen_by_all` returns once every rank sees a folder that rank 0 has made."""
        self.folder = Path(config.text("save_folder"))
        self._log, self._ranks, self._seen_by_all = log, ranks, seen_by_all
        self.saved: dict[str, int] = {}
        """The last step saved, by kind."""

    def latest(self) -> Path | None:
        """As `find_latest_checkpoint` of olmo/util.py: sharded ones first; saves that did not end do not count."""
        steps = [(step, not path.name.endswith("-unsharded"), path) for path, step in self._steps()]
        return max(steps)[2] if steps else None

    def step_of(self, checkpoint: Path) -> int:
        return int(checkpoint.name.removeprefix("step").removesuffix("-unsharded"))

    def save(self, step: int, kind: str, announced: str) -> None:
        """`kind` is `sharded` or `unsharded`; written beside its final name first. Raises OSError.

        Rank 0 alone makes the folder and renames it, and the others wait for both (olmo/checkpoint.py, _temporary_wd).
        """
        whole = kind == "unsharded"
        target = self.folder / f"step{step}{'-unsharded' if whole else ''}"
        partial = target.with_name(f"{target.name}-tmp")
        self._log.info("olmo.train:1304" if whole else "olmo.train:1271", f"Saving {announced}...")
        files = ("model.pt", "optim.pt", "train.pt") if whole else self._shards()
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        self._seen_by_all(partial)
        for name in files:
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            (partial / name).write_text(f"simulated: {name} of step {step}\n")
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
        self._seen_by_all(target)
        self.saved[kind] = step
        word = "Unsharded checkpoint" if whole else "Checkpoint"
        self._log.info("olmo.train:1306" if whole else "olmo.train:1273", f"{word} saved to {target}")

    def _steps(self) -> Iterable[tuple[Path, int]]:
        for path in self.folder.glob("step*"):
            number = path.name.removeprefix("step").removesuffix("-unsharded")
            if path.is_dir() and number.isdigit():
                yield path, int(number)

    def _shards(self) -> list[str]:
        return ["model/.metadata", "optim/.metadata", *(f"train/rank{rank}.pt" for rank in range(self._ranks))]


def _number(value: float) -> str:
    """As `log_metrics_to_console` of olmo/train.py."""
    if value < 1e-4:
        return str(value)
    if value > 1000:
        return f"{math.floor(value):,d}"
    digits = 1 if value > 100 else 2 if value > 10 else 3 if value > 1 else 4
    return f"{value:.{digits}f}"
