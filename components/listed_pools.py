"""Reports what an update of the cluster does to node pools, in place of the engine's own diff of them.

Azure lists all node pools in a cluster's `agentPoolProfiles`, and `pulumi refresh` copies that list into the state. The
program declares the system pool there and no other, so the engine shows the other pools as removed. They are not: Azure
keeps pools that an update of the cluster omits (pulumi-azure-native#579). `ignore_changes` would be harmful, because
the next update would send the copied list, with old node counts and deleted pools (pulumi-azure-native#2719).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pulumi
from pulumi.runtime import rpc

PROFILES = "agentPoolProfiles"
Profiles = Mapping[str, Mapping[str, Any]]
"""Properties of node pools, by their names."""


def report_pool_changes() -> pulumi.ResourceHook:
    """Returns a hook for updates of the cluster; it runs in previews too."""

    def report(update: pulumi.ResourceHookArgs) -> None:
        for line in pool_changes(_profiles(update.old_inputs), _profiles(update.new_inputs)):
            # Without a resource the message is logged at once: the engine may end before a URN is known.
            pulumi.log.info(line)

    return pulumi.ResourceHook("node pools of the cluster", report, pulumi.ResourceHookOptions(on_dry_run=True))


def pool_changes(before: Profiles, after: Profiles) -> Iterator[str]:
    """Yields one line for each changed property of a declared pool, and one for all pools that the update omits."""
    for name, pool in after.items():
        had = before.get(name, {})
        for key, value in pool.items():
            if had.get(key) != value:
                yield f"node pool {name}: {key} {_shown(had.get(key, 'unset'))} -> {_shown(value)}"
    if kept := sorted(set(before) - set(after)):
        yield (
            f"node pools {', '.join(kept)} stay as they are: a refresh has copied them from Azure's list into the "
            "state of the cluster, and this update takes them out of that state again"
        )


def _shown(value: object) -> str:
    if value in (rpc.UNKNOWN, pulumi.UNKNOWN):
        return "known after the update"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _profiles(inputs: Mapping[str, Any] | None) -> Profiles:
    return {pool["name"]: pool for pool in (inputs or {}).get(PROFILES) or () if "name" in pool}
