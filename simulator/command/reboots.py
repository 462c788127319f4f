"""`python -m simulator reboot`: boots a node again, which ends what runs there and mends what a reset of GPUs mends."""

from __future__ import annotations

import argparse

from simulator.command.faults import check_node, known_nodes
from simulator.world.boots import BootStore
from simulator.world.faults import FaultStore


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The parsed namespace has `run`, to be called with it."""
    reboot = commands.add_parser("reboot", help="boot a node again, which mends some of its faults")
    reboot.add_argument("node", help="name as kubectl get nodes has it")
    reboot.set_defaults(run=_reboot)


def _reboot(options: argparse.Namespace) -> None:
    """Raises FaultError."""
    check_node(options.node, known_nodes())
    store = FaultStore()
    healed = store.reboot(options.node)
    BootStore().boot(options.node)
    print(f"rebooted: {options.node}")
    for fault in healed:
        print(f"healed: {fault}")
    for fault in store.load():
        if fault.node == options.node:
            print(f"still broken: {fault}")
