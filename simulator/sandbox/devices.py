"""The simulated /sys and /dev of a pod, written as plain files that the sandbox binds read-only."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from simulator.world.hardware import Hca, NodeHardware

# InfiniBand names of link rates in Gb/s with four lanes, as the kernel's `rate` file has them.
RATE_NAMES = {50: "4X FDR10", 100: "4X EDR", 200: "4X HDR", 400: "4X NDR", 800: "4X XDR"}


def write_sys(folder: Path, hardware: NodeHardware) -> None:
    """Replaces `folder` by the node's /sys. As in life, all HCAs of the node show in every pod: sysfs knows no pods."""
    shutil.rmtree(folder, ignore_errors=True)
    for hca in hardware.hcas:
        _write_hca(folder / "class" / "infiniband" / hca.name, hca)
    network = folder / "class" / "net" / "eth0"
    _files(network, {"operstate": "up", "mtu": "1500", "speed": "100000"})


def device_nodes(hardware: NodeHardware, gpus: Iterable[int], hcas: Iterable[str], *, privileged: bool) -> list[str]:
    """Device files of a container: its allocated devices only; every device of the node for a privileged one."""
    indices = [gpu.index for gpu in hardware.gpus] if privileged else list(gpus)
    names = {hca.name for hca in hardware.hcas} if privileged else set(hcas)
    nodes = [f"/dev/nvidia{index}" for index in indices]
    nodes += ["/dev/nvidiactl", "/dev/nvidia-uvm"] if nodes else []
    uverbs = [f"/dev/infiniband/uverbs{number}" for number, hca in enumerate(hardware.hcas) if hca.name in names]
    return nodes + uverbs + (["/dev/infiniband/rdma_cm"] if uverbs else [])


def _write_hca(folder: Path, hca: Hca) -> None:
    active = hca.state == "ACTIVE"
    _files(folder, {"node_guid": hca.guid, "hca_type": f"MT{int(hca.device, 16)}", "fw_ver": "28.41.1000"})
    device = {
        "vendor": "0x15b3",
        "device": f"0x{hca.device}",
        "class": _pci_class(hca),
        "uevent": f"PCI_SLOT_NAME={hca.pci}",
    }
    _files(folder / "device", device)
    port = {
        "link_layer": hca.link_layer,
        "state": "4: ACTIVE" if active else "1: DOWN",
        "phys_state": "5: LinkUp" if active else "3: Disabled",
        "rate": f"{hca.gbps} Gb/sec ({RATE_NAMES.get(hca.gbps, '4X')})",
        "pkeys/0": hca.pkey,
        "pkeys/1": "0x7fff",  # the limited default partition, which every port holds
        "gids/0": f"fe80:0000:0000:0000:{hca.guid}",
    }
    _files(folder / "ports" / "1", port)


def _pci_class(hca: Hca) -> str:
    return "0x020700" if hca.link_layer == "InfiniBand" else "0x020000"


def _files(folder: Path, contents: dict[str, str]) -> None:
    for name, text in contents.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
