"""Rules that involve several settings, or that types cannot express."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from config.data.chart_values import ValueProblem, value_problems
from config.data.near import hint, near
from config.data.prices import by_price
from config.data.skus import catalogue, series, written_differently
from config.data.versions import minor_of, versions
from config.problems.errors import Problem
from config.problems.fixes import Path, by_hand, either_by_hand, in_file, say, set_command
from config.rules.access_path import access_problems
from config.rules.network import network_problems
from config.rules.pools import pool_problems
from config.rules.schedulers import second_schedulers
from config.rules.storage import account_problems, identity_problems, shared_files_problems
from config.rules.tags import tag_problems
from config.rules.teams import team_problems
from config.schema.cluster import ROLLING
from config.schema.models import StackFile
from config.schema.operators import Installation, key_of
from config.schema.pools import gpu_sizes
from config.schema.unknown_keys import unknown_key

SYSTEM_POOL_VCPUS = 4
"""The minimum vCPUs of a system node, which AKS requires for its add-ons."""
TYPE_WORDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "list": "a list",
    "map": "a map",
}


def problems(installation: Installation) -> Iterator[Problem]:
    for rule in RULES:
        yield from rule(installation.stack)
    yield from team_problems(installation)
    yield from second_schedulers(installation)
    yield from _operators(installation)


def _kubernetes_version(stack: StackFile) -> Iterator[Problem]:
    """Yields an error if AKS does not offer the minor version. Ignores patch versions: they change monthly, and Azure
    rejects unknown patches at once.
    """
    known = versions().kubernetes
    version = stack.cluster.kubernetes_version
    minor, offered = minor_of(version), known.offered(lts=stack.cluster.lts)
    if minor in offered:
        return
    fault = "which AKS does not offer to new clusters" if minor else "not a version"
    if minor in known.lts_ends:
        fault = "which AKS supports only with cluster.tier Premium"
    elif re.fullmatch(r"\d\.\d", version):
        fault += f"; if you mean {version}0, quote it in the stack file"
    path = ("cluster", "kubernetesVersion")
    allowed = f"{', '.join(offered)}, or a patch of these from `az aks get-versions --location {stack.location}`"
    plain = version.strip().lstrip("vV")
    fix = set_command(path, plain) if minor_of(plain) in offered else by_hand(path)
    yield Problem(path, f"is {version!r}, {fault}", allowed, fix)


def _pools(stack: StackFile) -> Iterator[Problem]:
    if "pools" not in stack.model_fields_set:
        if stack.vm_sku is None:
            what, fix = "is not set, and the stack has no pools", by_hand(("vmSku",))
            yield Problem(("vmSku",), what, by_price(gpu_sizes()), fix, lacking=("pools",))
        return
    for key, field in (("vmSku", "vm_sku"), ("nodeCount", "node_count")):
        if field in stack.model_fields_set:
            what = "applies to the default pool, which a stack with pools does not have"
            yield Problem((key,), what, "no value in a stack with pools", either_by_hand((key,), "remove pools"))
    for name, pool in stack.pools.items():
        yield from pool_problems(name, pool, ("pools", name))


def _placement_groups(stack: StackFile) -> Iterator[Problem]:
    """Yields pools with too many nodes. Azure would reject the first excess node only after the others have started."""
    limit = stack.cluster.placement_group_limit
    for key, pool in stack.gpu_pools().items():
        if pool.sku.infiniband is None or pool.max_nodes <= limit:
            continue
        last = ("autoscale", "max") if pool.autoscale else ("count",)
        path: Path = ("pools", key, *last) if key in stack.pools else ("nodeCount",)
        what = f"is {pool.max_nodes}, but a pool with InfiniBand ({pool.vm_sku}) is limited to one placement group"
        allowed = f"at most {limit} nodes; if Azure support has raised the limit, set cluster.placementGroupLimit"
        yield Problem(path, what, allowed, set_command(path, limit))


def _system_pool(stack: StackFile) -> Iterator[Problem]:
    path = ("cluster", "systemPool", "vmSku")
    name = stack.cluster.system_pool.vm_sku
    usable = [size.name for size in catalogue().values() if not size.gpus and size.vcpus >= SYSTEM_POOL_VCPUS]
    if name in usable:
        return
    size = catalogue().get(name)
    if size is None:
        found = near(name, usable)
        likely = written_differently(name, usable)
        what = f"is {name!r}, a VM size that this program does not know{hint(found)}"
    else:
        likely = []  # another size may cost more
        fault = f"has {size.vcpus} vCPUs; system nodes need {SYSTEM_POOL_VCPUS}" if not size.gpus else "has GPUs"
        what = f"is {name}, which {fault}"
    allowed = f"{SYSTEM_POOL_VCPUS} vCPUs or more: {', '.join(each.name.format('<vCPUs>') for each in series())}"
    yield Problem(path, what, allowed, set_command(path, likely[0]) if likely else by_hand(path))


_ENTRA = ("cluster", "entra")


def _login(stack: StackFile) -> Iterator[Problem]:
    cluster = stack.cluster
    if cluster.entra:
        return
    if not cluster.local_accounts:
        path = ("cluster", "localAccounts")
        what = "is false, and cluster.entra is also false: no user could log in to the cluster"
        yield Problem(path, what, "true for one of the two, or for both", set_command(_ENTRA, True))
    for path, given in (
        (("cluster", "adminGroupObjectIds"), cluster.admin_group_object_ids),
        (("cluster", "deployerObjectId"), cluster.deployer_object_id),
    ):
        if given:
            what = "names Entra identities, but cluster.entra is false"
            yield Problem(path, what, "cluster.entra true, or no value", set_command(_ENTRA, True))


def _identity(stack: StackFile) -> Iterator[Problem]:
    """Yields an error if a pool uses capacity reservations and the cluster has a system-assigned identity, which does
    not work (AKS's page on capacity reservation groups).
    """
    users = [f"pools.{key}" for key, pool in stack.pools.items() if pool.capacity_reservation_group]
    if not users or stack.cluster.identity:
        return
    what = f"is not set, and {users[0]}.capacityReservationGroup needs a user-assigned identity"
    how = (
        "create an identity with `az identity create`, assign that role (the assignment may take an hour), and set "
        "cluster.identity to its id"
    )
    allowed = "the id of an identity with the role Contributor on the resource group of the reservations"
    yield Problem(("cluster", "identity"), what, allowed, say(how), shows_value=False)


def _priorities(stack: StackFile) -> Iterator[Problem]:
    scaled = {key: pool.autoscale for key, pool in stack.pools.items() if pool.autoscale}
    ranked = [key for key, each in scaled.items() if each.priority is not None]
    path, chosen = ("cluster", "autoscaler", "expander"), stack.cluster.autoscaler.expander
    if ranked and chosen != "priority":
        names = ", ".join(f"pools.{key}" for key in ranked)
        what = f"is {chosen}, which ignores priorities, but {names} {'have' if len(ranked) > 1 else 'has'} a priority"
        yield Problem(path, what, "priority, or no autoscale.priority", set_command(path, "priority"))
    elif chosen == "priority" and not ranked:
        what = "is priority, but no pool has an autoscale.priority"
        fix = either_by_hand(path, "set pools.<name>.autoscale.priority")
        yield Problem(path, what, "random, least-waste or most-pods; or a pool with autoscale.priority", fix)


def _maintenance(stack: StackFile) -> Iterator[Problem]:
    cluster = stack.cluster
    if cluster.maintenance_window and cluster.node_os_channel not in ROLLING:
        path = ("cluster", "maintenanceWindow")
        what = f"has no effect: with cluster.nodeOsChannel {cluster.node_os_channel}, AKS does not roll out node images"
        channels = " or ".join(ROLLING)
        how = f"set cluster.nodeOsChannel to {channels}, or remove the window"
        yield Problem(path, what, f"no window, or cluster.nodeOsChannel {channels}", say(how))


def _operators(installation: Installation) -> Iterator[Problem]:
    for operator in installation.operators.values():
        yield from operator.problems(installation)
        if operator.has_chart:
            path = ("operators", key_of(operator.name), "values")
            for found in value_problems(operator.name, installation.values(operator)):
                yield _value_problem(operator.name, found, (*path, *found.path))
    for operator in installation.enabled():
        for capability, why in operator.needs.items():
            brought = installation.brought(capability)
            if not brought.enabled:
                path = ("operators", key_of(brought.by.name), "enabled")
                key = f"operators.{key_of(operator.name)}"
                yield Problem(
                    path, f"is false, but {key} {why}", f"true, or {key}.enabled false", set_command(path, True)
                )


def _value_problem(chart: str, found: ValueProblem, path: Path) -> Problem:
    version = versions().charts[chart].version
    if found.expected:
        what = f"has the wrong type for chart {chart} {version}"
        choose = in_file if found.expected in ("list", "map") else by_hand
        return Problem(path, what, TYPE_WORDS[found.expected], choose(path), shows_value=False)
    what = f"is a key that chart {chart} {version} does not have"
    return unknown_key(path, found.known, found.value, found.beside, what)


RULES: tuple[Callable[[StackFile], Iterator[Problem]], ...] = (
    _kubernetes_version,
    _pools,
    _placement_groups,
    _system_pool,
    _login,
    _identity,
    _maintenance,
    _priorities,
    account_problems,
    identity_problems,
    network_problems,
    shared_files_problems,
    tag_problems,
    access_problems,
)
