"""Logs of previews and updates about the stack: target, placement of workloads, and price.

Without a terminal, Pulumi prints each message twice: when it arrives, and under "Diagnostics". So only the preview,
which usually precedes an update, logs the table of prices.
"""

from __future__ import annotations

import pulumi
from pulumi_azure_native import authorization

from components.azure.cluster import SYSTEM_POOL
from components.preflight.existing import Existing, get_if_exists
from config.data.output_names import PRICE
from config.problems.fixes import set_command
from config.rules.cost import Cost, price_replaced_pools
from config.rules.teams import quota_table
from config.rules.vcpu_quota import growths
from config.schema.models import Settings


def report_plan(settings: Settings) -> None:
    """Logs the target and, in previews, the placements of workloads and the quotas of teams."""
    pulumi.log.info(_target(settings))
    if not pulumi.runtime.is_dry_run():
        return
    for placement in settings.placements.values():
        pulumi.log.info(str(placement))
    if not settings.shared_platform and (quotas := quota_table(settings)):
        pulumi.log.info(quotas)


def report_price(settings: Settings, existing: Existing, cost: Cost) -> None:
    before = existing.outputs.get(PRICE)
    if not pulumi.runtime.is_dry_run():
        pulumi.log.info(cost.heading(before))
        return
    replaced = price_replaced_pools(settings, growths(settings, existing.pools, SYSTEM_POOL, {}))
    pulumi.log.info("\n".join([cost.listing(before), *replaced]))


def _target(settings: Settings) -> str:
    if settings.shared_platform:
        return f"target: the platform of stack {settings.shared_platform.stack}"
    login = get_if_exists(authorization.get_client_config)
    account = (
        [f"subscription {login.subscription_id}", f"tenant {login.tenant_id}"] if login else ["an unknown subscription"]
    )
    if settings.location_key != "location" or "location" in settings.model_fields_set:
        return "\n  ".join([f"target: region {settings.location}", *account])
    change = set_command(("location",), "<region>").text(settings.stack).replace("'", "")
    return "\n  ".join([f"target: region {settings.location} (the default)", f"to change it: {change}", *account])
