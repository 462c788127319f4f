"""`python -m simulator evict`: evicts Spot machines, once or at a rate."""

from __future__ import annotations

import argparse

from simulator.azure import spot
from simulator.azure.store import records
from simulator.azure.types.agent_pool import life
from simulator.command.faults import listed
from simulator.host import paths
from simulator.world.evictions import Eviction, EvictionStore, Rate
from simulator.world.faults import FaultError


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command. `run` of the parsed namespace is a function that takes the namespace."""
    evict = commands.add_parser("evict", help="evict Spot nodes, as Azure does; without arguments, list evictions")
    evict.add_argument("node", nargs="*", help="name as in kubectl get nodes")
    evict.add_argument("--rate", type=float, metavar="PER_HOUR", help="Spot nodes to evict per hour; 0 ends this")
    evict.add_argument("--seed", type=int, default=0, help="with --rate: the seed for times and nodes")
    evict.add_argument("--without-drain", action="store_true", help="omit the drain, which AKS does not guarantee")
    evict.set_defaults(run=_evict)


def _evict(options: argparse.Namespace) -> None:
    store, drains = EvictionStore(), not options.without_drain
    if options.rate is not None:
        _set_rate(store, options.rate, options.seed, drains=drains)
    nodes = sorted(spot.machines(pool for pool in records(paths.home() / "azure") if _is_pool(pool.id.type)))
    if unknown := [name for name in options.node if name not in nodes]:
        raise FaultError(f"{unknown[0]} is not a Spot node; the Spot nodes are: {listed(nodes) or 'none'}")
    for name in options.node:
        store.ask(Eviction(name, drains))
        print(f"evicting {name} in {spot.NOTICE_S:.0f} s")
    if not options.node and options.rate is None:
        rate = store.rate()
        at_rate = [f"{rate.per_hour:g} per hour, seed {rate.seed}"] if rate else []
        print("\n".join([*at_rate, *(eviction.node for eviction in store.all())]) or "no evictions")


def _set_rate(store: EvictionStore, per_hour: float, seed: int, *, drains: bool) -> None:
    if not 0 <= per_hour < float("inf"):
        raise FaultError(f"--rate {per_hour:g}: must be a number of nodes per hour, or 0 to end the evictions")
    store.set_rate(Rate(per_hour, seed, drains) if per_hour else None)
    print(f"evicting {per_hour:g} Spot nodes per hour, seed {seed}" if per_hour else "evictions per hour have ended")


def _is_pool(resource_type: str) -> bool:
    return resource_type.lower() == life.TYPE.lower()
