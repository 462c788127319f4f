"""Conditions of GPUs and NVLinks, by the node-problem-detector's scripts, of what nvidia-smi prints."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from config.data import skus
from tests.unit.operators.condition_scripts import OK, PROBLEM, SCRIPTS, UNKNOWN, run


class Smi:
    """The scripts, with an nvidia-smi that prints a text."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder / "checks", folder / "bin"
        shutil.copytree(SCRIPTS, self.folder)
        root = folder / "driver"
        (root / "usr/bin").mkdir(parents=True)
        (root / "usr/bin/nvidia-smi").touch()
        library = self.folder / "lib.sh"
        library.write_text(library.read_text().replace("DRIVER_ROOT=/run/nvidia/driver", f"DRIVER_ROOT={root}"))
        self.bin.mkdir()

    def check(self, script: str, *arguments: str, output: str) -> tuple[int, str]:
        (self.bin / "output").write_text(output)
        (self.bin / "chroot").write_text(f"#!/bin/bash\ncat {self.bin}/output\n")
        (self.bin / "chroot").chmod(0o755)
        path = f"{self.bin}:{os.environ['PATH']}"
        return run(script, *arguments, scripts=self.folder, PATH=path, TMPDIR=str(self.bin))


LOST = "Unable to determine the device handle for GPU1: 0002:00:00.0: GPU is lost.\n"
UNUSED = [4, 5, 10, 11, 16, 17]


def links(product: str, *inactive: list[int], total: int = 18) -> str:
    lines = []
    for gpu, off in enumerate(inactive):
        lines.append(f"GPU {gpu}: {product} (UUID: GPU-0)")
        lines += [f"\t Link {link}: {'<inactive>' if link in off else '26.562 GB/s'}" for link in range(total)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("output", "code", "words"),
    [
        (links("NVIDIA H100 NVL", UNUSED, UNUSED), OK, "all NVLinks are active"),
        (links("NVIDIA H100 NVL", UNUSED, [0, *UNUSED]), PROBLEM, "inactive NVLinks: 0 of GPU 1,4 of GPU 1"),
        (links("NVIDIA H100 NVL", list(range(18)), UNUSED), PROBLEM, "inactive NVLinks: 0 of GPU 0"),
        (links("NVIDIA H100 80GB HBM3", [], [4]), PROBLEM, "inactive NVLinks: 4 of GPU 1"),
        (links("NVIDIA H200", [], []), OK, "all NVLinks are active"),
        (links("NVIDIA H200", []) + "GPU 1: NVIDIA H200 (UUID: GPU-1)\n", PROBLEM, "inactive NVLinks: all of GPU 1"),
        (links("NVIDIA H100 NVL", UNUSED) + "GPU 1: NVIDIA H100 NVL\nall links are inactive\n", PROBLEM, "inactive NV"),
        (links("NVIDIA H200", [], []).replace("26.562 GB/s", "0.000 GB/s"), PROBLEM, "inactive NVLinks: 0 of GPU 0"),
        (links("NVIDIA H200", []) + "GPU 1: NVIDIA H200\nGPU requires reset\n", PROBLEM, "GPU 1 requires a reset"),
        (links("NVIDIA H200", []) + LOST, UNKNOWN, "nvidia-smi does not tell of all GPUs: Unable to determine"),
        ("nothing\n", UNKNOWN, "nvidia-smi tells of no NVLink: nothing"),
    ],
)  # fmt: skip
def test_links_that_a_product_never_uses_are_no_fault(tmp_path: Path, output: str, code: int, words: str) -> None:
    found, message = Smi(tmp_path).check("gpu-nvlink.sh", output=output)
    assert (found, message[: len(words)]) == (code, words)


def test_the_links_that_the_script_accepts_are_those_of_the_catalogue() -> None:
    lines = (SCRIPTS / "nvlinks.txt").read_text("utf-8").splitlines()
    accepted = dict(line.split("\t") for line in lines if not line.startswith("#"))
    sizes = skus.catalogue().values()
    unused = {sku.gpu_product: str(len(sku.gpu_nvlinks_unused)) for sku in sizes if sku.gpu_nvlinks_unused}
    assert accepted == unused


@pytest.mark.parametrize("second", [LOST, f"GPU 1: {LOST}", "GPU 1: Unknown Error\n"])
def test_a_gpu_that_is_lost_is_not_counted(tmp_path: Path, second: str) -> None:
    output = f"GPU 0: NVIDIA H200 (UUID: GPU-1)\n{second}"
    assert Smi(tmp_path).check("gpu-count.sh", "2", output=output)[0] == PROBLEM


@pytest.mark.parametrize(
    ("script", "arguments", "output"),
    [
        ("gpu-memory.sh", ["errors"], "0, [GPU requires reset]\n"),
        ("gpu-memory.sh", ["remapping"], "00000000:01:00.0, [GPU requires reset]\n"),
        ("gpu-count.sh", ["1"], "GPU 0: NVIDIA H200 (UUID: GPU-1)\nGPU 0000:01:00.0: GPU requires reset\n"),
    ],
)
def test_a_gpu_that_requires_a_reset_is_a_problem(
    tmp_path: Path, script: str, arguments: list[str], output: str
) -> None:
    code, message = Smi(tmp_path).check(script, *arguments, output=output)
    assert (code, "reset" in message) == (PROBLEM, True), message
