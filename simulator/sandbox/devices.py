"""Writes a node's simulated /sys as plain files, and lists the device files of a container."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from simulator.host import files
from simulator.world.hardware import FLAPS, MELLANOX, Hca, NodeHardware, PciDevice

# InfiniBand's names of rates (Gb/s over four lanes), as in the kernel's `rate` file.
RATE_NAMES = {50: "4X FDR10", 100: "4X EDR", 200: "4X HDR", 400: "4X NDR", 800: "4X XDR"}


def write_sys(folder: Path, hardware: NodeHardware) -> None:
    """Updates the node's /sys, except disks. Every pod sees all HCAs, because sysfs is not namespaced."""
    for hca in hardware.hcas:
        _write_hca(folder / "class" / "infiniband" / hca.name, hca)
    _write_pci(folder / "bus" / "pci" / "devices", hardware.pci)
    network = folder / "class" / "net" / "eth0"
    write_files(network, {"operstate": "up", "mtu": "1500", "speed": "100000"})


def device_nodes(hardware: NodeHardware, gpus: Iterable[int], hcas: Iterable[str], *, privileged: bool) -> list[str]:
    """Returns a container's device files. A privileged container has all devices, others the allocated devices."""
    indices = [gpu.index for gpu in hardware.gpus] if privileged else list(gpus)
    names = {hca.name for hca in hardware.hcas} if privileged else set(hcas)
    nodes = [f"/dev/nvidia{index}" for index in indices]
    nodes += ["/dev/nvidiactl", "/dev/nvidia-uvm"] if nodes else []
    uverbs = [f"/dev/infiniband/uverbs{number}" for number, hca in enumerate(hardware.hcas) if hca.name in names]
    return nodes + uverbs + (["/dev/infiniband/rdma_cm"] if uverbs else [])


def _write_hca(folder: Path, hca: Hca) -> None:
    active = hca.state == "ACTIVE"
    write_files(folder, {"node_guid": hca.guid, "hca_type": f"MT{int(hca.device, 16)}", "fw_ver": "28.41.1000"})
    device = {
        "vendor": f"0x{MELLANOX}",
        "device": f"0x{hca.device}",
        "class": _pci_class(hca),
        "uevent": f"PCI_SLOT_NAME={hca.pci}",
    }
    write_files(folder / "device", device)
    port = {
        "link_layer": hca.link_layer,
        "state": "4: ACTIVE" if active else "1: DOWN",
        "phys_state": "5: LinkUp" if active else "3: Disabled",
        "rate": f"{hca.gbps} Gb/sec ({RATE_NAMES.get(hca.gbps, '4X')})",
        "counters/link_downed": str(FLAPS if hca.flapping and hca.link_layer == "InfiniBand" else 0),
        "pkeys/0": hca.pkey,
        "pkeys/1": "0x7fff",  # the default partition, as a limited member
        "gids/0": f"fe80:0000:0000:0000:{hca.guid}",
    }
    write_files(folder / "ports" / "1", port)


def _write_pci(folder: Path, functions: Sequence[PciDevice]) -> None:
    """Writes PCI functions, and removes lost functions. Assumes that subsystem ids equal vendor and device ids."""
    for function in functions:
        ids = {"vendor": f"0x{function.vendor}", "device": f"0x{function.device}"}
        subsystem = {f"subsystem_{name}": text for name, text in ids.items()}
        write_files(folder / function.address, {"class": f"0x{function.pci_class}00", **ids, **subsystem})
    for gone in {path.name for path in folder.iterdir()} - {function.address for function in functions}:
        shutil.rmtree(folder / gone)


def _pci_class(hca: Hca) -> str:
    return "0x020700" if hca.link_layer == "InfiniBand" else "0x020000"


def write_files(folder: Path, contents: Mapping[str, str]) -> None:
    for name, text in contents.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        files.replace(file, text + "\n")
