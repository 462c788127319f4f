"""`python -m simulator evict`: makes simulated Azure evict Spot machines, once or at a rate."""

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
    """Adds the command. The parsed namespace has a function `run`, which takes the namespace."""
    evict = commands.add_parser("evict", help="take Spot nodes back, as Azure does; alone lists which")
    evict.add_argument("node", nargs="*", help="name as kubectl get nodes has it")
    evict.add_argument("--rate", type=float, metavar="PER_HOUR", help="so many Spot nodes an hour; 0 for no more")
    evict.add_argument("--seed", type=int, default=0, help="with --rate: decides when, and which")
    evict.add_argument("--without-drain", action="store_true", help="the drain that AKS does not promise does not come")
    evict.set_defaults(run=_evict)


def _evict(options: argparse.Namespace) -> None:
    store, drains = EvictionStore(), not options.without_drain
    if options.rate is not None:
        _set_rate(store, options.rate, options.seed, drains=drains)
    nodes = sorted(spot.machines(pool for pool in records(paths.home() / "azure") if _is_pool(pool.id.type)))
    if unknown := [name for name in options.node if name not in nodes]:
        raise FaultError(f"no Spot node is called {unknown[0]}; there are: {listed(nodes) or 'none'}")
    for name in options.node:
        store.ask(Eviction(name, drains))
        print(f"evicted: {name}, in {spot.NOTICE_S:.0f} s")
    if not options.node and options.rate is None:
        rate = store.rate()
        at_rate = [f"{rate.per_hour:g} an hour, seed {rate.seed}"] if rate else []
        print("\n".join([*at_rate, *(eviction.node for eviction in store.all())]) or "nothing is being evicted")


def _set_rate(store: EvictionStore, per_hour: float, seed: int, *, drains: bool) -> None:
    if not 0 <= per_hour < float("inf"):
        raise FaultError(f"--rate {per_hour:g}: must be 0, which ends it, or a number of nodes an hour")
    store.set_rate(Rate(per_hour, seed, drains) if per_hour else None)
    print(f"evicted: {per_hour:g} Spot nodes an hour, seed {seed}" if per_hour else "no more evictions at a rate")


def _is_pool(resource_type: str) -> bool:
    return resource_type.lower() == life.TYPE.lower()
