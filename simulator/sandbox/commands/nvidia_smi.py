"""`nvidia-smi`: the GPUs of this pod, plain, as a list (-L) or as CSV (--query-gpu)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from simulator.sandbox.library import view

DRIVER, CUDA = "580.95.05", "13.0"
FIELDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "index": lambda gpu: str(gpu["index"]),
    "name": lambda gpu: gpu["product"],
    "gpu_name": lambda gpu: gpu["product"],
    "uuid": lambda gpu: gpu["uuid"],
    "gpu_uuid": lambda gpu: gpu["uuid"],
    "pci.bus_id": lambda gpu: bus_id(gpu),
    "memory.total": lambda gpu: f"{memory_mib(gpu)} MiB",
    "driver_version": lambda gpu: DRIVER,
    "remapped_rows.pending": lambda gpu: "Yes" if gpu["remap_pending"] else "No",
    "clocks_event_reasons.hw_slowdown": lambda gpu: "Active" if gpu["slowed"] else "Not Active",
}
LOST = "Unable to determine the device handle for GPU{}: {}: Unknown Error"


def main(arguments: list[str]) -> int:
    """0, or 6 without a GPU, 15 with a lost one, 2 for what is not simulated."""
    known = view.load()
    gpus = known.gpus_of(known.me)
    if not gpus:
        print("No devices were found")
        return 6
    lost = [gpu for gpu in gpus if not gpu["healthy"]]
    for gpu in lost:
        print(LOST.format(gpu["index"], bus_id(gpu)))
    if lost:
        return 15
    if arguments == ["-L"]:
        for gpu in gpus:
            print(f"GPU {gpu['index']}: {gpu['product']} (UUID: {gpu['uuid']})")
        return 0
    if arguments and arguments[0].startswith("--query-gpu="):
        return _query(arguments, gpus)
    if arguments:
        print(f"simulator: nvidia-smi {' '.join(arguments)} is not simulated; -L and --query-gpu are", file=sys.stderr)
        return 2
    _summary(gpus)
    return 0


def bus_id(gpu: dict[str, Any]) -> str:
    """As nvidia-smi prints it: a domain of eight digits, capitals."""
    return f"0000{gpu['pci']}".upper()


def memory_mib(gpu: dict[str, Any]) -> int:
    """The marketing number read as GiB, near what nvidia-smi shows."""
    return int(gpu["memory_gb"]) * 1024


def _query(arguments: list[str], gpus: list[dict[str, Any]]) -> int:
    names = arguments[0].partition("=")[2].split(",")
    if unknown := [name for name in names if name not in FIELDS]:
        print(f'Field "{unknown[0]}" is not a valid field to query (simulated: {", ".join(FIELDS)}).', file=sys.stderr)
        return 2
    style = next((word.partition("=")[2] for word in arguments[1:] if word.startswith("--format=")), "csv")
    if "noheader" not in style:
        print(", ".join(names))
    for gpu in gpus:
        values = [FIELDS[name](gpu) for name in names]
        print(", ".join(value.removesuffix(" MiB") if "nounits" in style else value for value in values))
    return 0


def _summary(gpus: list[dict[str, Any]]) -> None:
    line = "+" + "-" * 77 + "+"
    print(line)
    print(f"| {f'NVIDIA-SMI {DRIVER}':<28}{f'Driver Version: {DRIVER}':<29}{f'CUDA Version: {CUDA}':<18} |")
    print(line)
    for gpu in gpus:
        text = f"{gpu['index']:3d}  {gpu['product']:<26} {bus_id(gpu)}  0MiB / {memory_mib(gpu)}MiB"
        print(f"| {text:<75} |")
    print(line)
