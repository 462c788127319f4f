"""How a changed driver reaches nodes: `operators.driverUpgrades`, as the policies of both NVIDIA operators have it.

Both restart no driver pod by its DaemonSet (OnDelete), but by one controller that they share (NVIDIA/k8s-operator-libs,
pkg/upgrade): cordon, wait for jobs, evict pods with GPUs (the GPU operator alone), drain, restart, uncordon. Left to
the chart's defaults it waits for no job, may not evict pods with an emptyDir, as all of ours have, and leaves their
node cordoned (pod_manager.go, updateNodeToDrainOrFailed).
"""

from __future__ import annotations

from typing import Any

from config.schema.operators import DriverUpgrades

NOT_OF_A_DAEMON_SET = "pod-template-generation!=0,!pod-template-generation"
"""Selects all pods but those of DaemonSets, whose controller puts that label on them (pkg/controller/daemon/util).

So it waits for what users bring along too, and then finds nothing left to evict. The first term changes nothing: the
GPU operator's chart does not quote the text (clusterpolicy.yaml:235), and YAML reads one that begins with ! as a tag.
"""


def upgrade_policy(upgrades: DriverUpgrades) -> dict[str, Any]:
    """The `upgradePolicy` of a driver: one node at a time, for which it waits as long as pods run there."""
    return {
        "autoUpgrade": upgrades == "when-idle",
        "maxParallelUpgrades": 1,
        "waitForCompletion": {"podSelector": NOT_OF_A_DAEMON_SET, "timeoutSeconds": 0},
        "drain": {"enable": False},
    }
