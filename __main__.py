"""The Pulumi program: reads the settings, deploys foundation, platform and workloads, and exports outputs."""

from __future__ import annotations

import gc
from collections.abc import Collection, Mapping
from datetime import date
from typing import Any

import pulumi

import operators
import workloads
from components import stack_outputs
from components.access import phases
from components.azure import retries
from components.azure.azure_resources import prepare_all
from components.azure.reservations import check_reservations, groups, reserved_nodes
from components.foundation import Foundation
from components.manifests import check_manifests
from components.operators import Operator
from components.platform import Platform
from components.platform_guard import PlatformGuard
from components.preflight.azure import check_rights, check_subscription
from components.preflight.checks import check_all, check_login
from components.preflight.existing import Existing, check_existing, own_outputs
from components.preflight.existing_system_pool import keep_system_pool
from components.preflight.features import check_infiniband
from components.preflight.locks import check_locks
from components.shared_platform import SharedPlatform
from components.storage import kept_files
from components.storage.kept_files import storage_warnings
from components.summary import report_plan, report_price
from config.data.output_names import PRICE
from config.reading import loader
from config.rules.advice import unread_options, warnings
from config.rules.cost import hourly_cost
from config.rules.support_end import support_warnings
from config.schema.inventory import Inventory
from config.schema.models import PlatformStack, Settings


def main() -> None:
    # Collections took a quarter of the CPU time, because the SDKs have many objects. The process ends with the update.
    gc.disable()
    known_operators, known = operators.find(), workloads.find()
    settings = loader.load(Inventory(known_operators, known))
    outputs = own_outputs()
    logged = [*warnings(settings), *unread_options(settings, known), *support_warnings(settings, date.today())]
    for warning in (*logged, *storage_warnings(settings, outputs)):
        pulumi.log.warn(warning)
    report_plan(settings)
    prepare_all(settings)
    retries.retry_webhooks()
    made, before = _record_resources(), kept_files.kept_before(outputs)
    if settings.shared_platform:
        platform: Platform | SharedPlatform = _shared_platform(settings, settings.shared_platform, before)
    else:
        settings, existing, foundation = _foundation(settings, known_operators)
        if foundation is None:
            return
        platform = Platform("platform", foundation, known_operators, existing)
    where = settings.placements
    deployed = {name: workloads.deploy(known[at.workload], platform.context_of(at), at) for name, at in where.items()}

    if isinstance(platform, Platform):
        own = {operator.namespace for operator in known_operators.values()}
        protects = settings.storage.protect
        PlatformGuard("guard", platform.context, tuple(made), own, protects_files=protects)
        stack_outputs.export(stack_outputs.platform_outputs(platform))
    else:
        stack_outputs.export(stack_outputs.shared_platform_outputs(platform))
    commands = {name: found.shown(where[name]) for name, found in deployed.items()}
    details = {name: found.outputs(where[name]) for name, found in deployed.items()}
    stack_outputs.export(stack_outputs.workload_outputs(commands, details, kept_files.files(made, before)))


def _record_resources() -> list[pulumi.Resource]:
    """Returns a list that collects every resource declared after this call."""
    made: list[pulumi.Resource] = []

    def note(declared: pulumi.ResourceTransformationArgs) -> None:
        made.append(declared.resource)

    pulumi.runtime.register_stack_transformation(note)
    return made


def _shared_platform(
    settings: Settings, shared_platform: PlatformStack, kept_before: Collection[str]
) -> SharedPlatform:
    phases.check_shared_platform(settings, shared_platform)
    output = shared_platform.output
    mounted = [container for name, container in output.containers.items() if settings.users(name)]
    if output.federation and any(map(stack_outputs.is_opened_by_identity, mounted)):
        check_rights(output.federation["resourceGroup"], output.federation["location"])
    return SharedPlatform("platform", settings, shared_platform, kept_before=kept_before)


def _foundation(settings: Settings, known: Mapping[str, Operator[Any]]) -> tuple[Settings, Existing, Foundation | None]:
    """Checks the state in Azure, and creates the foundation of the stack's own platform.

    Returns the completed settings, the existing resources, and the foundation (None in the first of two phases).
    """
    existing = check_existing(settings)
    if within := phases.deploys_inside(settings, existing):
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
    foundation = Foundation("foundation", kept, existing, within=within)
    stack_outputs.export({PRICE: cost.output()})
    if within:
        return kept, existing, foundation
    group = kept.names.resource_group
    stack_outputs.export(stack_outputs.foundation_outputs(foundation, phases.next_command(kept, group)))
    pulumi.log.warn(phases.after_first_phase(kept, group))
    return kept, existing, None


main()
