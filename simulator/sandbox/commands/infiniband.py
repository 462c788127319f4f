"""`ibstat` and `ibv_devinfo`, which list the HCAs in the container's /sys and /dev."""

from __future__ import annotations

import sys
from pathlib import Path

CLASS = Path("/sys/class/infiniband")
DEVICES = Path("/dev/infiniband")


def main(arguments: list[str]) -> int:
    if arguments:
        print(f"simulator: {Path(sys.argv[0]).name} is simulated only without arguments", file=sys.stderr)
        return 2
    folders = sorted(CLASS.iterdir()) if CLASS.is_dir() else []
    usable = [folder for number, folder in enumerate(folders) if (DEVICES / f"uverbs{number}").exists()]
    if not usable:
        print("No IB devices found")
        return 255
    show = _ibstat if Path(sys.argv[0]).name == "ibstat" else _devinfo
    for folder in usable:
        show(folder)
    return 0


def _ibstat(folder: Path) -> None:
    port = folder / "ports" / "1"
    print(f"CA '{folder.name}'\n\tCA type: {_read(folder / 'hca_type')}\n\tNumber of ports: 1")
    print(f"\tNode GUID: 0x{_read(folder / 'node_guid').replace(':', '')}\n\tPort 1:")
    print(f"\t\tState: {_word(port / 'state').capitalize()}\n\t\tPhysical state: {_word(port / 'phys_state')}")
    print(f"\t\tRate: {_read(port / 'rate').partition(' ')[0]}\n\t\tLink layer: {_read(port / 'link_layer')}")


def _devinfo(folder: Path) -> None:
    port = folder / "ports" / "1"
    print(f"hca_id:\t{folder.name}\n\tnode_guid:\t\t{_read(folder / 'node_guid')}\n\tphys_port_cnt:\t\t1\n\t\tport:\t1")
    print(f"\t\t\tstate:\t\t\tPORT_{_word(port / 'state')}\n\t\t\tlink_layer:\t\t{_read(port / 'link_layer')}\n")


def _read(file: Path) -> str:
    return file.read_text().strip()


def _word(file: Path) -> str:
    return _read(file).partition(": ")[2]
