"""`chroot` into the file system of NVIDIA's driver. Can run only nvidia-smi."""

from __future__ import annotations

import sys
from pathlib import Path

from simulator.sandbox.library import nvidia_smi, view

FAILED, NOT_FOUND = 125, 127


def main(arguments: list[str]) -> int:
    root, command, *rest = arguments
    known = view.load()
    if not Path(root).is_dir():
        return _refuse(f"cannot change root directory to '{root}': No such file or directory", FAILED)
    if not (Path(root) / "usr" / "bin" / command).is_file():
        return _refuse(
            f"failed to run command \N{LEFT SINGLE QUOTATION MARK}{command}\N{RIGHT SINGLE QUOTATION MARK}: "
            "No such file or directory",
            NOT_FOUND,
        )
    gpus = known.node_of(known.me)["gpus"] if known.me.facts.get("privileged") else known.gpus_of(known.me)
    return nvidia_smi.answer(rest, gpus)


def _refuse(why: str, code: int) -> int:
    print(f"chroot: {why}", file=sys.stderr)
    return code
