"""Warnings of previews about valid settings that will cause problems. They do not stop the update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic.alias_generators import to_camel, to_snake

from config.data.allocatable import MAX_PODS, MIN_SYSTEM_PODS
from config.data.scheduling import ALL_GPUS_COUNTED_SINCE
from config.problems.errors import Problem
from config.problems.fixes import Path, path_text, remove_command, say, set_command
from config.rules.platform_stack import in_platform
from config.rules.pools import autoscale_fixed
from config.schema.base import Model
from config.schema.cluster import ROLLING, ClusterSettings
from config.schema.models import Placement, Settings
from config.schema.operators import OperatorSettings
from config.schema.storage import StorageSettings, next_rotation
from config.schema.workload import WorkloadCatalogue


def warnings(settings: Settings) -> Iterator[str]:
    if not settings.shared_platform:
        of_platform = (
            *_rolls_at_any_time(settings.cluster),
            *_makes_no_files(settings.storage),
            *_few_pods(settings),
            *_open_teams(settings),
            *_fixed_beside_autoscaled(settings),
            *_shorter_than_a_build(settings),
            *_without_effect(settings),
        )
        yield from (problem.text(settings.stack) for problem in of_platform)
    for name, placement in settings.placements.items():
        found = [*_unmounted(name, placement, settings.storage), *_outlived(name, placement, settings.storage)]
        if settings.shared_platform:
            found = in_platform(found, str(settings.shared_platform.stack))
        yield from (problem.text(settings.stack) for problem in found)


def unread_options(settings: Settings, known: WorkloadCatalogue) -> Iterator[str]:
    running = {placement.workload for placement in settings.placements.values()}
    for key in sorted({key for spec in known.values() for key in spec.keys}):
        readers = [name for name, spec in known.items() if key in spec.keys]
        if running.isdisjoint(readers) and to_snake(key) in settings.model_fields_set:
            what = (
                f"is set, but no workload of this stack reads it ({', '.join(sorted(running)) or 'the stack has none'})"
            )
            allowed = f"a stack with {' or '.join(readers)}"
            yield Problem((key,), what, allowed, remove_command((key,))).text(settings.stack)


def _rolls_at_any_time(cluster: ClusterSettings) -> Iterator[Problem]:
    if cluster.node_os_channel in ROLLING and cluster.maintenance_window is None:
        path = ("cluster", "maintenanceWindow")
        why = f"with cluster.nodeOsChannel {cluster.node_os_channel}, AKS reimages nodes at any time"
        yield Problem(path, f"is not set: {why}", "a weekly window", set_command((*path, "day"), "Sunday"))


def _open_teams(settings: Settings) -> Iterator[Problem]:
    if settings.teams and settings.network.policy == "none":
        path = ("network", "policy")
        what = "is none, so the NetworkPolicies of teams have no effect: all pods can reach the pods of each team"
        yield Problem(
            path,
            what,
            "cilium or calico; for an existing cluster, the next preview prints the az command to run first",
            set_command(path, "cilium"),
        )


def _few_pods(settings: Settings) -> Iterator[Problem]:
    for key, pool in settings.gpu_pools().items():
        if pool.pods < MIN_SYSTEM_PODS:
            path = ("pools", key, "maxPods")
            what = f"is {pool.pods}, but AKS and operators alone run about 25 pods on a GPU node"
            yield Problem(path, what, f"{MIN_SYSTEM_PODS} or more", set_command(path, MAX_PODS))


def _fixed_beside_autoscaled(settings: Settings) -> Iterator[Problem]:
    """Yields warnings about pools that do not autoscale, because one of their nodes can stop every scale-up.

    Since 1.35 the autoscaler counts the GPUs of all nodes before each scale-up. If a node offers none, the autoscaler
    uses its pool's template, which these pools lack (kubernetes/autoscaler#10301).
    """
    pools = settings.gpu_pools()
    autoscaled = next((key for key, pool in pools.items() if pool.autoscale), None)
    minor = tuple(int(part) for part in settings.cluster.kubernetes_version.split(".")[:2])
    if autoscaled is None or minor < ALL_GPUS_COUNTED_SINCE:
        return
    for key, pool in pools.items():
        if pool.autoscale is None and pool.count:
            path = ("pools", key)
            what = (
                f"has a fixed count ({pool.count}), but pools.{autoscaled} autoscales: while a node of pools.{key} "
                "offers no GPUs, such as during a driver build, AKS adds no nodes to any pool"
            )
            fix = autoscale_fixed(path, pool.count, counted="count" in pool.model_fields_set)
            allowed = f"autoscale with min and max {pool.count}, which keeps the number of nodes"
            yield Problem(path, what, allowed, fix)


def _shorter_than_a_build(settings: Settings) -> Iterator[Problem]:
    chosen = settings.cluster.autoscaler
    pools = [(key, pool) for key, pool in settings.gpu_pools().items() if pool.autoscale]
    builds = {key: settings.operators.driver_minutes(infiniband=bool(pool.sku.infiniband)) for key, pool in pools}
    key = max(builds, key=lambda each: builds[each], default="")
    for name, minutes, effect in (
        ("unreadyMinutes", chosen.unready_minutes, "deletes the node earlier"),
        ("provisionMinutes", chosen.provision_minutes, "gives up the scale-up earlier"),
    ):
        if minutes < (least := builds.get(key, 0)):
            path = ("cluster", "autoscaler", name)
            what = f"is {minutes}, but a node of pools.{key} builds drivers for up to {least} minutes: AKS {effect}"
            yield Problem(path, what, f"{least} or more", remove_command(path))


def _without_effect(settings: Settings) -> Iterator[Problem]:
    idle: list[tuple[Path, Model, str]] = [
        (("operators", to_camel(name)), each, f"operators.{to_camel(name)}.enabled true")
        for name, each in settings.operators
        if isinstance(each, OperatorSettings) and not each.enabled
    ]
    if not any(pool.autoscale for pool in settings.gpu_pools().values()):
        idle.append((("cluster", "autoscaler"), settings.cluster.autoscaler, "a pool with autoscale"))
    for path, section, lacking in idle:
        for key in sorted(map(to_camel, section.model_fields_set - {"enabled"})):
            here = (*path, key)
            yield Problem(here, f"has no effect without {lacking}", f"no value, or {lacking}", remove_command(here))


def _makes_no_files(storage: StorageSettings) -> Iterator[Problem]:
    """Yields writable containers without `p`, with which blobfuse2 sets the permissions of each new file in a
    hierarchical namespace.
    """
    for name, account in storage.by_container().items():
        chosen, of_sas = account.settings.containers[name], account.settings.auth == "sas"  # an identity owns its files
        lacks = "w" in chosen.permissions and "p" not in chosen.permissions
        if lacks and of_sas and account.settings.hierarchical_namespace:
            path = (*account.path_of(name), "permissions")
            what = f"is {chosen.permissions}, but in a hierarchical namespace mounts cannot create files without p"
            how = "add m and p if mounts create files there, or remove w if mounts only read"
            yield Problem(path, what, "letters with m and p, or letters without w", say(how))


def _unmounted(name: str, placement: Placement[Any], storage: StorageSettings) -> Iterator[Problem]:
    """Yields a warning if no driver is set, which is valid during a change of drivers, or with a driver of the user."""
    containers = placement.options.containers
    if storage.driver == "none" and containers:
        path = ("storage", "driver")
        what = f"is none, so workload {name} waits until another driver mounts {', '.join(containers)}"
        yield Problem(path, what, "addon or chart", set_command(path, "addon"))


def _outlived(name: str, placement: Placement[Any], storage: StorageSettings) -> Iterator[Problem]:
    """Yields a warning if a workload without an end may run longer than its SAS, after which mounts fail. A SAS for a
    year is long enough.
    """
    end, accounts = placement.options.open_end, storage.by_container()
    for container in placement.options.containers if end else ():
        account = accounts[container]
        chosen, rotation = account.settings.containers[container], path_text((*account.path, "rotation"))
        if account.settings.auth != "sas" or (chosen.sas == "service" and chosen.days == chosen.most_days):
            continue
        path = (*account.path_of(container), "days")
        what = f"is {chosen.days}, but without {end}, workload {name} runs longer than the SAS, and then fails"
        allowed = f"at most {chosen.most_days}; or a new {rotation} before the SAS expires"
        renewed = f"change {rotation} before the SAS expires, for example to {next_rotation(account.settings.rotation)}"
        yield Problem(path, what, allowed, say(f"set {end}, or {renewed}"))
