"""Reads what exists of a stack before any resource is declared, and rejects impossible changes.

Without these checks, Pulumi would replace a storage account and lose its data, or replace everything if the region or
group changes. In the middle of an update, Azure would reject a new VM size of the system pool or SKU of an account.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, get_args

import pulumi
from pulumi_azure_native import compute, containerregistry, containerservice, network, storage

from components.access.jump_box import jump_box_name
from components.azure.roles import subscription_id
from components.preflight.existing_cluster import (
    cluster_refusals,
    excluded_nodes,
    is_stopped,
    removed_nodes,
    stopped_refusal,
)
from components.preflight.existing_network import jump_box_warnings, network_refusal
from components.preflight.existing_system_pool import system_pool_refusals
from components.preflight.moving import Place, chosen_place, moving_refusal
from components.stack_outputs import account_names
from components.storage.kept_files import kept_before
from config.data.output_names import CLUSTER_ID, PLATFORM, REGISTRY
from config.problems.errors import lines
from config.problems.fixes import path_text, set_command, text_of
from config.reading.loader import outputs_of, this_stack
from config.rules.azure_errors import explained
from config.rules.pools import autoscale_fixed
from config.rules.vcpu_quota import Nodes
from config.schema.models import Settings
from config.schema.network import JUMP_BOX
from config.schema.regions import region_name
from config.schema.storage import Account, AccountSku

Found = TypeVar("Found")
_ABSENT = ("ResourceNotFound", "ResourceGroupNotFound")
"""ARM's 404 codes, as the provider returns them (pulumi-azure-native, provider/pkg/provider/provider.go, Invoke)."""


@dataclass(frozen=True)
class Existing:
    """The state of a stack in Azure and Pulumi before its program declares anything."""

    outputs: Mapping[str, Any]
    """The outputs of the stack's last successful update; empty before the first one."""
    group: str
    cluster_name: str
    cluster: containerservice.GetManagedClusterResult | None
    accounts: Mapping[str, storage.GetStorageAccountResult]
    own_network: network.GetVirtualNetworkResult | None
    registry: containerregistry.GetRegistryResult | None = None

    @property
    def address_space(self) -> str | None:
        space = self.own_network.address_space if self.own_network else None
        return next(iter((space and space.address_prefixes) or ()), None)

    @property
    def has_jump_box_subnets(self) -> bool:
        return any(subnet.name == JUMP_BOX for subnet in (self.own_network and self.own_network.subnets) or ())

    @property
    def node_os_channel(self) -> str | None:
        """The existing cluster's OS channel (the text "None" stands for no patches), or None without a cluster."""
        if self.cluster is None:
            return None
        profile = self.cluster.auto_upgrade_profile
        return (profile and profile.node_os_upgrade_channel) or "None"

    @property
    def ip_ranges(self) -> list[str]:
        """The address ranges that the existing API server accepts; empty for all addresses."""
        profile = self.cluster.api_server_access_profile if self.cluster else None
        return list((profile and profile.authorized_ip_ranges) or ())

    @property
    def pools(self) -> dict[str, Nodes]:
        pools = (self.cluster.agent_pool_profiles if self.cluster else None) or ()
        return {
            pool.name: Nodes(
                pool.vm_size or "",
                pool.count or 0,
                spot=pool.scale_set_priority == "Spot",
                version=pool.current_orchestrator_version or "",
            )
            for pool in pools
        }

    @property
    def node_counts(self) -> dict[str, int]:
        return {name: pool.count for name, pool in self.pools.items()}


def check_existing(settings: Settings) -> Existing:
    """Returns what exists, and logs warnings.

    Raises pulumi.RunError if the settings require an impossible change.
    """
    existing = _look(settings)
    if why := "\n".join(_refusals(settings, existing)):
        raise pulumi.RunError(why)
    for warning in _warnings(settings, existing):
        pulumi.log.warn(warning)
    if pulumi.runtime.is_dry_run():
        _warn_of_the_registry(settings, existing.registry)
    return existing


def own_outputs() -> Mapping[str, Any]:
    return get_if_exists(lambda: outputs_of(str(this_stack()))) or {}


def _look(settings: Settings) -> Existing:
    names = settings.names
    outputs = own_outputs()
    group, name = outputs.get("resourceGroup", names.resource_group), outputs.get("clusterName", names.cluster)
    cluster = get_if_exists(lambda: containerservice.get_managed_cluster(resource_name=name, resource_group_name=group))
    registry_name = settings.registry.full_name(settings.names, subscription_id())
    registry = get_if_exists(lambda: containerregistry.get_registry(registry_name, resource_group_name=group))
    network = _network(settings, group, cluster)
    return Existing(outputs, group, name, cluster, _accounts(settings, group), network, registry)


def _network(
    settings: Settings, group: str, cluster: containerservice.GetManagedClusterResult | None
) -> network.GetVirtualNetworkResult | None:
    in_subnets = any(pool.vnet_subnet_id for pool in (cluster.agent_pool_profiles if cluster else None) or ())
    if not (in_subnets or settings.network.address_space):
        return None
    names = {"virtual_network_name": settings.names.cluster, "resource_group_name": group}
    return get_if_exists(lambda: network.get_virtual_network(**names))


def _warnings(settings: Settings, existing: Existing) -> Iterator[str]:
    if existing.cluster is None and existing.outputs.get(CLUSTER_ID):
        again = f"PULUMI_K8S_DELETE_UNREACHABLE=true pulumi up --refresh -s {settings.stack}"
        yield (
            f"the cluster {existing.cluster_name} was deleted in Azure, but Pulumi's state still has it and its "
            f"objects. Remove them from the state and re-create them:\n    {again}"
        )
    for team in sorted(set(_teams_before(existing.outputs)) - set(settings.teams)):
        yield (
            f"team {team} is not in `teams` any more: this update deletes the team's namespace with all claims and "
            f"their files. List the claims: kubectl get persistentvolumeclaims -n {team}"
        )
    yield from removed_nodes(settings, existing.outputs, existing.node_counts)
    yield from excluded_nodes(settings, existing.cluster)
    if existing.has_jump_box_subnets:
        names = {"resource_group_name": existing.group, "vm_name": jump_box_name(settings)}
        if machine := get_if_exists(lambda: compute.get_virtual_machine(**names)):
            yield from jump_box_warnings(settings, existing.group, machine)


def _teams_before(outputs: Mapping[str, Any]) -> Mapping[str, Any]:
    teams: Mapping[str, Any] = outputs.get(PLATFORM, {}).get("settings", {}).get("teams", {})
    return teams


def _refusals(settings: Settings, existing: Existing) -> Iterator[str]:
    cluster = existing.cluster
    if is_stopped(cluster):
        yield stopped_refusal(existing.group, existing.cluster_name, settings.stack)
        return
    if found := cluster or next(iter(existing.accounts.values()), existing.registry):
        place = Place(region_name(found.location), existing.group, existing.cluster_name)
        if place != chosen_place(settings):
            yield moving_refusal(settings, place, _irreplaceable(existing))
            return
    if cluster:
        yield from cluster_refusals(settings, cluster)
        yield from system_pool_refusals(settings, cluster)
    if why := network_refusal(settings, cluster, existing.address_space):
        yield why
    for account in settings.storage.made_accounts():
        if there := existing.accounts.get(account.key):
            yield from account_refusals(there, account, settings.stack)


def _accounts(settings: Settings, group: str) -> dict[str, storage.GetStorageAccountResult]:
    found: dict[str, storage.GetStorageAccountResult] = {}
    for account in settings.storage.made_accounts():
        ask = partial(storage.get_storage_account, account.full_name(settings.names, subscription_id()))
        if there := get_if_exists(partial(ask, resource_group_name=group)):
            found[account.key] = there
    return found


def _warn_of_the_registry(settings: Settings, registry: containerregistry.GetRegistryResult | None) -> None:
    wanted = settings.registry.sku
    if registry is None:
        nodes = any(pool.min_nodes for pool in settings.gpu_pools().values())
        if nodes and settings.images.registry is None and not settings.network.two_phases:
            pulumi.log.warn(images_first(settings))
    elif registry.sku.name != wanted and "sku" not in settings.registry.model_fields_set:
        keep = set_command(("registry", "sku"), registry.sku.name).text(settings.stack)
        pulumi.log.warn(f"registry {registry.name} changes to {wanted} in place. To keep {registry.sku.name}: {keep}")


def _irreplaceable(existing: Existing) -> Iterator[str]:
    if cluster := existing.cluster:
        yield f"cluster {cluster.name}: its workloads, and their data on persistent volumes"
    if registry := existing.outputs.get(REGISTRY):
        yield f"registry {registry}: its images"
    there = [account.name for account in existing.accounts.values()]
    for name in dict.fromkeys([*there, *account_names(existing.outputs)]):
        yield f"storage account {name}: all data in it"
    for claim in kept_before(existing.outputs):
        yield f"claim {claim}: its files"


def get_if_exists(ask: Callable[[], Found]) -> Found | None:
    """Returns Azure's answer, or None if the resource or its group does not exist, such as before the first `up`."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - invokes raise bare exceptions
        if any(code in str(error) for code in _ABSENT):
            return None
        raise pulumi.RunError(explained(str(error), pulumi.get_stack())) from None


def images_first(settings: Settings) -> str:
    """Returns the warning about GPU nodes that start before the registry has images.

    If a pool autoscales, the commands replace each fixed pool's `count` by bounds, as in config/rules/advice.py.
    """
    pools = {key: pool for key, pool in settings.gpu_pools().items() if pool.min_nodes}
    nodes = sum(pool.min_nodes for pool in pools.values())
    scales = any(pool.autoscale for pool in settings.pools.values())
    fixes = [
        autoscale_fixed(("pools", key), pool.count, least=0)
        if scales and not pool.autoscale
        else set_command(("pools", key, *pool.count_key) if settings.pools else ("nodeCount",), 0)
        for key, pool in pools.items()
    ]
    return lines(
        f"{nodes} GPU nodes would start before the registry has images, and cost money while they wait.",
        "Deploy without nodes first, push the images (docs/images.md), and then set the nodes again:",
        *(f"    {fix.text(settings.stack)}" for fix in fixes),
    )


def account_refusals(there: storage.GetStorageAccountResult, account: Account, stack: str) -> Iterator[str]:
    """Yields an error for each setting that cannot change in an existing account.

    The provider replaces an account if `isHnsEnabled` changes. Azure rejects a new kind, and changes to or from ZRS and
    Premium (https://learn.microsoft.com/azure/storage/common/redundancy-migration).
    """
    settings = account.settings
    has = {"hierarchicalNamespace": bool(there.is_hns_enabled), "sku": there.sku.name}
    wanted = {"hierarchicalNamespace": settings.hierarchical_namespace, "sku": settings.sku}
    for key, value in has.items():
        if value == wanted[key] or (key == "sku" and value not in get_args(AccountSku)):
            continue
        path = (*account.path, key)
        yield lines(
            f"{path_text(path)} is {text_of(wanted[key])}, but the storage account {there.name} has {text_of(value)}.",
            "No update can change this without data loss. Nothing was changed. Keep the value and `pulumi up` again:",
            f"    {set_command(path, value).text(stack)}",
            "Or add an account under storage.accounts, with containers of other names, and copy the data.",
        )
