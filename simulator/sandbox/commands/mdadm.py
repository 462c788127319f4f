"""`mdadm`: --examine --export, --create, --assemble and --stop of RAID 0."""

from __future__ import annotations

import argparse
import sys
import uuid

from simulator.sandbox.library import block
from simulator.sandbox.library.block import Refused

FIRST_ARRAY = 127
"""The default number of the first array. Further arrays get the next lower numbers."""


def main(arguments: list[str]) -> int:
    """Returns 0, 1 if mdadm would fail, or 2 for unsupported options."""
    parser = argparse.ArgumentParser(prog="mdadm", add_help=False, exit_on_error=False, allow_abbrev=False)
    modes = parser.add_mutually_exclusive_group(required=True)
    for mode in ("examine", "create", "assemble", "stop"):
        modes.add_argument(f"--{mode}", action="store_true")
    for flag in ("export", "quiet", "run"):
        parser.add_argument(f"--{flag}", action="store_true")
    for option in ("homehost", "name", "level", "raid-devices"):
        parser.add_argument(f"--{option}")
    parser.add_argument("devices", nargs="+")
    try:
        options, unknown = parser.parse_known_intermixed_args(arguments)
    except argparse.ArgumentError:
        return block.not_simulated("mdadm", arguments)
    if unknown or (options.examine and not options.export) or (options.create and not options.run):
        return block.not_simulated("mdadm", arguments)
    try:
        if options.examine:
            _examine(options.devices)
        elif options.stop:
            _stop(options.devices)
        elif options.create:
            _create(options)
        else:
            _assemble(options.devices[1:], options.homehost)
    except Refused as error:
        return block.complain("mdadm", error)
    return 0


def _examine(devices: list[str]) -> None:
    for device in devices:
        raid = block.read(block.disk_name(device)).get("raid")
        if raid is None:
            raise Refused(f"No md superblock detected on {device}.")
        print(f"MD_LEVEL=raid0\nMD_DEVICES={raid['devices']}\nMD_METADATA=1.2\nMD_UUID={raid['uuid']}")
        print(f"MD_NAME={raid['name']}")


def _create(options: argparse.Namespace) -> None:
    members = [block.disk_name(device) for device in options.devices[1:]]
    if options.level != "0" or options.homehost != "any" or options.raid_devices != str(len(members)):
        raise Refused("simulator: only RAID 0 of the given number of devices, for any home host, is simulated")
    for member in members:
        block.refuse_busy(member)
    raid = {"name": f"any:{options.name}", "uuid": str(uuid.uuid4()), "devices": len(members)}
    for number, member in enumerate(members):
        block.write(member, {"raid": {**raid, "number": number}})
    _start(members, "clean")


def _assemble(devices: list[str], homehost: str | None) -> None:
    members = [block.disk_name(device) for device in devices]
    for member in members:
        block.refuse_busy(member)
    superblocks = [block.read(member).get("raid") for member in members]
    for device, raid in zip(devices, superblocks, strict=True):
        if raid is None or (homehost == "any" and not raid["name"].startswith("any:")):
            raise Refused(f"no recogniseable superblock on {device}")
    known = [raid for raid in superblocks if raid]
    if len({raid["uuid"] for raid in known}) != 1:
        raise Refused(f"superblock on {devices[-1]} doesn't match others - assembly aborted")
    complete = len(known) == known[0]["devices"]
    name = _start(members, "clean" if complete else "inactive")
    if not complete:
        raise Refused(f"/dev/{name} assembled from {len(known)} drives - not enough to start the array.")


def _start(members: list[str], state: str) -> str:
    taken = {entry.name for entry in block.BLOCK.iterdir()}
    number = next(number for number in range(FIRST_ARRAY, 0, -1) if f"md{number}" not in taken)
    return block.new_array(number, block.read(members[0])["raid"]["uuid"], state=state, members=members)


def _stop(devices: list[str]) -> None:
    for device in devices:
        name = block.disk_name(device)
        if any(used == device for used, _ in block.mounts()):
            print(f"mdadm: Cannot get exclusive access to {device}: it is mounted", file=sys.stderr)
            raise Refused(f"failed to stop array {device}: Device or resource busy")
        block.remove_array(name)
