"""How a changed driver reaches nodes (`operators.driverUpgrades`), and the warning of a change for which it has to.

Both NVIDIA operators restart no driver pod by its DaemonSet (OnDelete), but by one controller that they share
(NVIDIA/k8s-operator-libs, pkg/upgrade): cordon, wait for jobs, evict pods with GPUs (the GPU operator alone), drain,
restart, uncordon. Left to the chart's defaults it waits for no job, may not evict pods with an emptyDir, as all of ours
have, and leaves their node cordoned (pod_manager.go, updateNodeToDrainOrFailed).

Previews warn too: Pulumi's steps do not show that drivers have to be rolled. The engine gives hooks of an update the
resource's old inputs and its new ones (Pulumi, "Resource hooks").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pulumi

from config.schema.operators import DriverUpgrades

NOT_OF_A_DAEMON_SET = "pod-template-generation!=0,!pod-template-generation"
"""Selects all pods but those of DaemonSets, whose controller puts that label on them (pkg/controller/daemon/util).

So it waits for what users bring along too, and then finds nothing left to evict. The first term changes nothing: the
GPU operator's chart does not quote the text (clusterpolicy.yaml:235), and YAML reads one that begins with ! as a tag.
"""
Inputs = Mapping[str, Any]
_THEN: Mapping[DriverUpgrades, str] = {
    "manual": "you roll them, jobs first, by the commands of docs/drivers.md; its policy is notReady for so long",
    "when-idle": "the operator rolls them, one at a time: it cordons a node, and waits for all jobs there to end",
}
_UPGRADES = "driverUpgrades"
"""What rolls whichever drivers are outdated already, if it is when-idle now."""


def upgrade_policy(upgrades: DriverUpgrades) -> dict[str, Any]:
    """The `upgradePolicy` of a driver: one node at a time, for which it waits as long as pods run there."""
    return {
        "autoUpgrade": upgrades == "when-idle",
        "maxParallelUpgrades": 1,
        "waitForCompletion": {"podSelector": NOT_OF_A_DAEMON_SET, "timeoutSeconds": 0},
        "drain": {"enable": False},
    }


def told(driver: str, made_of: Callable[[Inputs], Inputs], upgrades: DriverUpgrades) -> pulumi.ResourceHookBinding:
    """For a resource that makes a driver's DaemonSet; `made_of` are those of its inputs that are in the template."""

    def tell(update: pulumi.ResourceHookArgs) -> None:
        before, after = made_of(update.old_inputs or {}), made_of(update.new_inputs or {})
        changed = sorted(name for name in {**before, **after} if before.get(name) != after.get(name))
        if changed and (changed != [_UPGRADES] or upgrades == "when-idle"):
            # Without a resource it is said at once: the engine may end before what waits for a URN.
            pulumi.log.warn(driver_warning(driver, changed, upgrades))

    options = pulumi.ResourceHookOptions(on_dry_run=True)
    return pulumi.ResourceHookBinding(before_update=[pulumi.ResourceHook(f"{driver} changes", tell, options)])


def driver_warning(driver: str, changed: list[str], upgrades: DriverUpgrades) -> str:
    """Names what has changed, and no value: one may be a secret."""
    return f"{driver} changes ({', '.join(changed)}): nodes keep an outdated one until {_THEN[upgrades]}"


def settings_of(driver: Inputs) -> dict[str, Any]:
    """Those of a driver, as the policies of both operators have them; of how it is upgraded, only whether by itself."""
    rest = {name: value for name, value in driver.items() if name != "upgradePolicy"}
    return {**rest, _UPGRADES: (driver.get("upgradePolicy") or {}).get("autoUpgrade")}
