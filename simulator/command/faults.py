"""`python -m simulator fault`, `heal` and `reboot`: injects and repairs faults of hardware or Azure."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection
from typing import Any

from config.data import skus
from simulator.host import paths
from simulator.host.similar import similar
from simulator.world.boots import BootStore
from simulator.world.faults import OF_AZURE, OF_GPU, Fault, FaultError, FaultKind, FaultStore, new_fault
from simulator.world.hardware import node_hardware

Nodes = dict[str, dict[str, Any]]
_SHOWN_NODES = 8


def add_parsers(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the commands. `run` of the parsed namespace is a function that takes the namespace."""
    fault = commands.add_parser("fault", help="break hardware or Azure; without arguments, list the faults")
    fault.add_argument("kind", nargs="?", help=", ".join(FaultKind))
    fault.add_argument("--node", default="", help="name as in kubectl get nodes")
    fault.add_argument("--device", default="", help="GPU (3), NVMe disk (nvme3n1) or InfiniBand device (mlx5_3)")
    fault.add_argument("--code", type=int, help="xid: the code, such as 48; node-setup: the exit code")
    fault.add_argument("--tag", default="", help="policy: the tag required on resource groups, such as CostCenter")
    fault.add_argument("--gbps", type=int, help="link, rail: the remaining rate in Gb/s")
    fault.add_argument("--size", default="", help="capacity, price: the VM size")
    fault.add_argument("--spot", type=int, help="capacity: machines left for Spot pools; other pools are not limited")
    fault.add_argument("--usd", type=float, help="price: dollars per hour of a Spot machine")
    fault.add_argument("--level", default="", help="lock: CanNotDelete or ReadOnly")
    fault.add_argument("--scope", default="", help="lock: subscription, group (all groups), or a resource group's name")
    fault.add_argument("--seconds", type=int, help="how long the fault lasts (default: until it is healed)")
    fault.set_defaults(run=_fault)
    heal = commands.add_parser("heal", help="repair all faults, or the faults that match")
    heal.add_argument("kind", nargs="?", default="", help=", ".join(FaultKind))
    heal.add_argument("--node", default="")
    heal.add_argument("--device", default="")
    heal.set_defaults(run=_heal)
    reboot = commands.add_parser("reboot", help="reboot a node, which repairs some of its faults")
    reboot.add_argument("node", help="name as in kubectl get nodes")
    reboot.set_defaults(run=_reboot)


def _fault(options: argparse.Namespace) -> None:
    store = FaultStore()
    if options.kind is None:
        given = options.node, options.device, options.gbps, options.size, options.seconds, options.spot is not None
        if any(given) or options.usd or options.code or options.level or options.scope or options.tag:
            raise FaultError(f"the kind of fault is missing: use one of {', '.join(FaultKind)}")
        print("\n".join(map(str, store.load())) or "no faults")
        return
    gbps, seconds, code = (_amount(options, name) for name in ("gbps", "seconds", "code"))
    more = {"size": options.size, "spot": options.spot, "usd": options.usd or 0.0}
    more |= {"level": options.level, "scope": options.scope, "tag": options.tag}
    fault = new_fault(options.kind, options.node, options.device, gbps, seconds=seconds, code=code, **more)
    check(fault, known_nodes())
    store.fault(fault)
    print(f"broken: {fault}")


def _amount(options: argparse.Namespace, name: str) -> int:
    """Returns the option, or 0 if it is missing. Raises FaultError if the user gave 0."""
    given: int | None = getattr(options, name)
    if given == 0:
        raise FaultError(f"--{name} 0: must be above 0")
    return given or 0


def _heal(options: argparse.Namespace) -> None:
    if options.kind and options.kind not in list(FaultKind):
        raise FaultError(f"unknown fault kind {options.kind!r}: use one of {', '.join(FaultKind)}")
    store = FaultStore()
    if options.node and options.node not in {fault.node for fault in store.load()}:
        check_node(options.node, known_nodes())
    healed = store.heal(options.kind, options.node, options.device)
    nothing = "no matching faults" if store.load() else "no faults"
    print("\n".join(f"healed: {fault}" for fault in healed) or nothing)


def _reboot(options: argparse.Namespace) -> None:
    """Reboots a node, which also heals the faults that a GPU reset heals."""
    check_node(options.node, known_nodes(), "node")
    store = FaultStore()
    healed = store.reboot(options.node)
    BootStore().boot(options.node)
    print(f"rebooted: {options.node}")
    for fault in healed:
        print(f"healed: {fault}")
    for fault in store.load():
        if fault.node == options.node:
            print(f"still broken: {fault}")


def known_nodes() -> Nodes:
    nodes: Nodes = {}
    for file in sorted((paths.home() / "clusters").glob("*/world/world.json")):
        nodes |= json.loads(file.read_text())["nodes"]
    return nodes


def check(fault: Fault, nodes: Nodes) -> None:
    """Raises FaultError, with the valid names, for an unknown node, device or VM size."""
    if fault.kind in OF_AZURE:
        _check_size(fault.size)
        return
    name = _fastest(nodes) if fault.kind is FaultKind.RAIL else fault.node
    check_node(name, nodes)
    node = nodes[name]
    infiniband = _infiniband(node)
    devices = _devices(fault, node, infiniband)
    if fault.kind in (FaultKind.PARTITION, FaultKind.RAIL) and not infiniband:
        raise FaultError(f"{name} ({node['sku']}) has no InfiniBand")
    if fault.device and fault.device not in devices:
        raise FaultError(f"{name} ({node['sku']}) has no {fault.device}; it has {', '.join(devices) or 'none'}")
    if fault.gbps and fault.gbps >= infiniband[fault.device]["rated_gbps"]:
        rated = infiniband[fault.device]["rated_gbps"]
        raise FaultError(f"--gbps {fault.gbps}: must be below {rated}, the rate of {fault.device}")


def _infiniband(node: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {hca["name"]: hca for hca in node["hcas"] if hca["link_layer"] == "InfiniBand"}


def _fastest(nodes: Nodes) -> str:
    """Returns the node with the fastest InfiniBand, the reference for a rail fault on all nodes."""
    rates = {
        name: max((hca["rated_gbps"] for hca in _infiniband(node).values()), default=0) for name, node in nodes.items()
    }
    return max(sorted(rates), key=lambda name: rates[name], default="")


def _devices(fault: Fault, node: dict[str, Any], infiniband: Collection[str]) -> Collection[str]:
    if fault.kind in OF_GPU:
        return [str(gpu["index"]) for gpu in node["gpus"]]
    if fault.kind is FaultKind.NVME:
        return [disk.name for disk in node_hardware(skus.sku(node["sku"]), fault.node).nvme]
    return infiniband


def _check_size(size: str) -> None:
    if size and size not in skus.catalogue():
        with_gpus = [each.name for each in skus.catalogue().values() if each.gpus]
        likely = similar(size, with_gpus) or with_gpus
        raise FaultError(f"--size {size}: not a VM size of config/data/skus.yaml, such as {', '.join(likely)}")


def check_node(name: str, nodes: Nodes, argument: str = "--node") -> None:
    """Raises FaultError if the node does not exist."""
    if not nodes:
        raise FaultError("no simulated nodes exist yet. To create nodes: make up")
    if name not in nodes:
        raise FaultError(f"{argument} {name or 'is missing'}: the nodes are {listed(nodes)}")


def listed(nodes: Collection[str]) -> str:
    return ", ".join(sorted(nodes)[:_SHOWN_NODES]) + (", ..." if len(nodes) > _SHOWN_NODES else "")
