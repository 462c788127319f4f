"""The rollout of changed drivers to nodes (`operators.driverUpgrades`), and the warning about such a change.

Driver DaemonSets of both NVIDIA operators have the update strategy OnDelete. A controller in both operators restarts
their pods (NVIDIA/k8s-operator-libs, pkg/upgrade): cordon, wait for jobs, evict pods with GPUs (only the GPU operator),
drain, restart, uncordon. By default, it does not wait for jobs. If pods have an emptyDir, as in all our jobs, it cannot
evict them, and leaves the node cordoned (pod_manager.go, updateNodeToDrainOrFailed).

The warning comes from an update hook, also in previews, because Pulumi's steps do not show the rollout (Pulumi,
"Resource hooks").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pulumi

from config.schema.operators import DriverUpgrades

NOT_OF_A_DAEMON_SET = "pod-template-generation!=0,!pod-template-generation"
"""The selector of all pods without the label of DaemonSets' pods (pkg/controller/daemon/util).

With it, the controller also waits for users' pods, and then has nothing to evict. The first term only prevents a
leading !, which YAML reads as a tag: the GPU operator's chart does not quote the text (clusterpolicy.yaml:235).
"""
Inputs = Mapping[str, Any]
_THEN: Mapping[DriverUpgrades, str] = {
    "manual": "you roll out the new driver after all jobs on a node have ended (docs/drivers.md); until then, the "
    "policy of the driver is notReady",
    "when-idle": "the operator rolls out the new driver: it cordons one node at a time, and waits for all jobs on the "
    "node to end",
}
_UPGRADES = "driverUpgrades"
"""The setting's name among changed inputs. A change to `when-idle` rolls out changes that are still pending."""


def upgrade_policy(upgrades: DriverUpgrades) -> dict[str, Any]:
    return {
        "autoUpgrade": upgrades == "when-idle",
        "maxParallelUpgrades": 1,
        "waitForCompletion": {"podSelector": NOT_OF_A_DAEMON_SET, "timeoutSeconds": 0},
        "drain": {"enable": False},
    }


def change_hook(
    driver: str, template_inputs: Callable[[Inputs], Inputs], upgrades: DriverUpgrades
) -> pulumi.ResourceHookBinding:
    """Returns the hook for a resource that creates a driver's DaemonSet.

    `template_inputs` returns the inputs that affect the DaemonSet's pods.
    """

    def warn(update: pulumi.ResourceHookArgs) -> None:
        before, after = template_inputs(update.old_inputs or {}), template_inputs(update.new_inputs or {})
        changed = sorted(name for name in {**before, **after} if before.get(name) != after.get(name))
        if changed and (changed != [_UPGRADES] or upgrades == "when-idle"):
            # The message omits the values of changed inputs, because a value may be a secret. It names no resource: the
            # engine may end before it knows the resource's URN.
            pulumi.log.warn(
                f"{driver} changes ({', '.join(changed)}): nodes keep the outdated driver until {_THEN[upgrades]}"
            )

    options = pulumi.ResourceHookOptions(on_dry_run=True)
    return pulumi.ResourceHookBinding(before_update=[pulumi.ResourceHook(f"{driver} changes", warn, options)])


def settings_of(driver: Inputs) -> dict[str, Any]:
    """Returns a driver's settings from an operator's policy, with only `autoUpgrade` from `upgradePolicy`."""
    rest = {name: value for name, value in driver.items() if name != "upgradePolicy"}
    return {**rest, _UPGRADES: (driver.get("upgradePolicy") or {}).get("autoUpgrade")}
