"""Prints nvidia-smi's output, and returns its exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

Json = dict[str, Any]
DRIVER, CUDA = "580.95.05", "13.0"
NVLINKS = {"A100": 12, "H100": 18, "H200": 18}
"""Links of each GPU on nodes with several GPUs (NVIDIA's data sheets)."""
NVLINK_GBS = {"A100": 25.0, "H100": 26.562, "H200": 26.562}
"""The speed per link, as nvidia-smi prints it."""
LOST = "Unable to determine the device handle for GPU{}: {}: Unknown Error"


def _active(is_active: bool) -> str:
    return "Active" if is_active else "Not Active"


_OF_GPU: dict[str, Callable[[Json], str]] = {
    "index": lambda gpu: str(gpu["index"]),
    "name": lambda gpu: gpu["product"],
    "gpu_name": lambda gpu: gpu["product"],
    "uuid": lambda gpu: gpu["uuid"],
    "gpu_uuid": lambda gpu: gpu["uuid"],
    "pci.bus_id": lambda gpu: bus_id(gpu),
}
FIELDS: dict[str, dict[str, Callable[[Json], str]]] = {
    "gpu": {
        **_OF_GPU,
        "memory.total": lambda gpu: f"{memory_mib(gpu)} MiB",
        "driver_version": lambda gpu: DRIVER,
        "remapped_rows.pending": lambda gpu: "Yes" if gpu["remap_pending"] else "No",
        "ecc.errors.uncorrected.volatile.total": lambda gpu: str(int(gpu["remap_pending"])),
        **{
            f"clocks_event_reasons.{reason}": lambda gpu: _active(gpu["slowed"])
            for reason in ("hw_slowdown", "hw_thermal_slowdown")
        },
        "clocks_event_reasons.sw_thermal_slowdown": lambda gpu: _active(False),
    },
    "remapped-rows": {
        "gpu_bus_id": lambda gpu: bus_id(gpu),
        "gpu_uuid": lambda gpu: gpu["uuid"],
        "remapped_rows.pending": lambda gpu: _remapped(gpu, "remap_pending"),
        "remapped_rows.failure": lambda gpu: _remapped(gpu, "remap_failed"),
    },
}
"""Fields by query (`--query-gpu`, `--query-remapped-rows`)."""


def answer(arguments: Sequence[str], gpus: Sequence[Json]) -> int:
    """Prints nvidia-smi's output for these GPUs.

    Returns 0, 6 without a GPU, 15 if a GPU is lost, or 2 for unsupported arguments.
    """
    if not gpus:
        print("No devices were found")
        return 6
    lost = [gpu for gpu in gpus if not gpu["healthy"]]
    for gpu in lost:
        print(LOST.format(gpu["index"], bus_id(gpu)))
    if lost:
        return 15
    if list(arguments) == ["-L"]:
        for gpu in gpus:
            print(_heading(gpu))
        return 0
    if list(arguments) in (["nvlink", "-s"], ["nvlink", "--status"]):
        _nvlinks(gpus)
        return 0
    for what in FIELDS:
        if arguments and arguments[0].startswith(f"--query-{what}="):
            return _query(what, arguments, gpus)
    if arguments:
        known = ", ".join(["-L", "nvlink -s", *(f"--query-{what}" for what in FIELDS)])
        print(f"simulator: nvidia-smi {' '.join(arguments)} is not simulated: use {known}", file=sys.stderr)
        return 2
    _summary(gpus)
    return 0


def bus_id(gpu: Json) -> str:
    """Returns nvidia-smi's bus id: capitals, and a domain of eight digits."""
    return f"0000{gpu['pci']}".upper()


def memory_mib(gpu: Json) -> int:
    """Returns the nominal size in GB times 1024, which is close to nvidia-smi's value."""
    return int(gpu["memory_gb"]) * 1024


def _heading(gpu: Json) -> str:
    return f"GPU {gpu['index']}: {gpu['product']} (UUID: {gpu['uuid']})"


def _remapped(gpu: Json, what: str) -> str:
    """Before Ampere, GPUs cannot remap rows (NVIDIA, GPU memory error management)."""
    return str(int(gpu[what])) if gpu["model"] != "T4" else "[N/A]"


def _nvlinks(gpus: Sequence[Json]) -> None:
    for gpu in gpus:
        print(_heading(gpu))
        for link in range(NVLINKS.get(gpu["model"], 0) if len(gpus) > 1 else 0):
            lost = link in gpu["lost_links"]
            print(f"\t Link {link}: {'<inactive>' if lost else format(NVLINK_GBS[gpu['model']], 'g') + ' GB/s'}")


def _query(what: str, arguments: Sequence[str], gpus: Sequence[Json]) -> int:
    fields = FIELDS[what]
    names = arguments[0].partition("=")[2].split(",")
    if unknown := [name for name in names if name not in fields]:
        print(f'Field "{unknown[0]}" is not a valid field to query (simulated: {", ".join(fields)}).', file=sys.stderr)
        return 2
    style = next((word.partition("=")[2] for word in arguments[1:] if word.startswith("--format=")), "csv")
    if "noheader" not in style:
        print(", ".join(names))
    for gpu in gpus:
        values = [fields[name](gpu) for name in names]
        print(", ".join(value.removesuffix(" MiB") if "nounits" in style else value for value in values))
    return 0


def _summary(gpus: Sequence[Json]) -> None:
    line = "+" + "-" * 77 + "+"
    print(line)
    print(f"| {f'NVIDIA-SMI {DRIVER}':<28}{f'Driver Version: {DRIVER}':<29}{f'CUDA Version: {CUDA}':<18} |")
    print(line)
    for gpu in gpus:
        text = f"{gpu['index']:3d}  {gpu['product']:<26} {bus_id(gpu)}  0MiB / {memory_mib(gpu)}MiB"
        print(f"| {text:<75} |")
    print(line)
