"""Settings -> platform -> workloads -> outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from typing import Any

import pulumi

import operators
import workloads
from components import kept_files, way_in, webhook_delay
from components.azure_resources import prepare_all
from components.borrowed_platform import BorrowedPlatform
from components.container_access import by_identity
from components.existing import check_existing, own_outputs
from components.existing_system_pool import keep_system_pool
from components.feature_check import check_infiniband
from components.kept_files import storage_warnings
from components.locks import check_locks
from components.manifests import check_manifests
from components.operators import Operator
from components.platform import Platform
from components.platform_guard import PlatformGuard
from components.preflight import check_all, check_login
from components.preflight_azure import check_rights, check_subscription
from components.reservations import check_reservations, groups, reserved_nodes
from components.summary import report_plan, report_price
from config.reading import loader
from config.rules.advice import unread_options, warnings
from config.rules.cost import hourly_cost
from config.rules.support_end import support_warnings
from config.schema.inventory import Inventory
from config.schema.models import Settings


def main() -> None:
    """Declares everything of the stack."""
    known_operators, known = operators.find(), workloads.find()
    settings = loader.load(Inventory(known_operators, known))
    outputs = own_outputs()
    told = [*warnings(settings), *unread_options(settings, known), *support_warnings(settings, date.today())]
    for warning in (*told, *storage_warnings(settings, outputs)):
        pulumi.log.warn(warning)
    report_plan(settings)
    prepare_all(settings)
    webhook_delay.retry_all()
    made, before = _all_that_is_made(), kept_files.kept_before(outputs)
    settings, platform = _platform(settings, known_operators, before)
    if isinstance(platform, Platform) and not platform.within:
        _export(platform)
        pulumi.log.warn(way_in.after_first_phase(settings, settings.names.resource_group))
        return
    where = settings.placements
    deployed = {name: workloads.deploy(known[at.workload], platform.context_of(at), at) for name, at in where.items()}

    if isinstance(platform, Platform):
        own = {operator.namespace for operator in known_operators.values()}
        protects = settings.storage.protect
        PlatformGuard("guard", platform.context, tuple(made), own, protects_files=protects)
    _export(platform)
    pulumi.export("workloads", {name: found.shown(where[name]) for name, found in deployed.items()})
    details = {name: found.outputs(where[name]) for name, found in deployed.items()}
    pulumi.export("workloadDetails", pulumi.Output.secret(details))
    pulumi.export(kept_files.OUTPUT, kept_files.files(made, before))


def _export(platform: Platform | BorrowedPlatform) -> None:
    for name, value in platform.outputs().items():
        pulumi.export(name, value)


def _all_that_is_made() -> list[pulumi.Resource]:
    """Grows with each resource that is declared from now on."""
    made: list[pulumi.Resource] = []

    def note(declared: pulumi.ResourceTransformationArgs) -> None:
        made.append(declared.resource)

    pulumi.runtime.register_stack_transformation(note)
    return made


def _platform(
    settings: Settings, known: Mapping[str, Operator[Any]], kept_before: Collection[str]
) -> tuple[Settings, Platform | BorrowedPlatform]:
    """This stack's own, or that of the stack that `platformStack` names; and the settings, which it completes."""
    if settings.lender:
        way_in.check_guest(settings, settings.lender)
        lending = settings.lender.lending
        mounted = [container for name, container in lending.containers.items() if settings.users(name)]
        if lending.federation and any(map(by_identity, mounted)):
            check_rights(lending.federation["resourceGroup"], lending.federation["location"])
        return settings, BorrowedPlatform("platform", settings, settings.lender, kept_before=kept_before)
    existing = check_existing(settings)
    if within := way_in.deploys_inside(settings, existing):
        check_login(None if settings.cluster.local_accounts else settings.cluster.login, settings.stack)
    kept = keep_system_pool(settings, existing.cluster)
    reservations = groups(kept)
    check_all(
        (
            lambda: check_infiniband(kept.gpu_pools(), checked_before=within and kept.network.jump_box is not None),
            lambda: check_reservations(kept, reservations),
            lambda: check_subscription(kept, existing, reserved_nodes(kept, reservations)),
            lambda: check_locks(kept, existing),
            lambda: check_manifests(kept, known if within else {}),
        )
    )
    cost = hourly_cost(kept, existing.node_counts, within=within)
    report_price(kept, existing, cost)
    return kept, Platform("platform", kept, known, existing, cost, within=within)


main()
