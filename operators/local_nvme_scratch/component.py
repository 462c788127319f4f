"""Local NVMe scratch: one file system of all local NVMe disks of a node, mounted on the node itself."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pulumi

from components.operators import Installed, Site
from config.facts.scheduling import ANY_TAINT, SCRATCH_FOLDER, SCRATCH_LABEL, SCRATCH_MOUNT
from operators._node_tools import Manifest, daemon_set

NAME = "local-nvme-scratch"
"""Of the DaemonSet and of its image in `docker/`."""
_PARENT = str(PurePosixPath(SCRATCH_MOUNT).parent)
_SMALL = {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}}
_NOBODY = 65534


class LocalNvmeScratch(Installed):
    """The DaemonSet, on nodes that carry the label. A pod of it is Ready when its node's scratch is mounted."""

    def __init__(
        self, name: str, site: Site, opts: pulumi.ResourceOptions | None = None, *, wipe_foreign: bool = False
    ) -> None:
        super().__init__(name, opts)
        daemon_set(NAME, site, pod_spec(site.image(NAME), wipe_foreign=wipe_foreign), parent=self)
        self.register_outputs({})


def pod_spec(image: str, *, wipe_foreign: bool = False) -> dict[str, Any]:
    """A pod whose init container makes and mounts the file system, and whose container only shows that it is there.

    The file system stays when the pod goes: jobs use it, and the next pod finds it.
    """
    return {
        "nodeSelector": {SCRATCH_LABEL: "true"},
        "tolerations": ANY_TAINT,
        # Jobs of its node wait for it: it must not wait for room.
        "priorityClassName": "system-node-critical",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "initContainers": [_setup(image, wipe_foreign)],
        "containers": [_witness(image)],
        "volumes": [
            {"name": "dev", "hostPath": {"path": "/dev", "type": "Directory"}},
            {"name": "mounts", "hostPath": {"path": _PARENT, "type": "Directory"}},
            {"name": "proc", "hostPath": {"path": "/proc", "type": "Directory"}},
        ],
    }


def _setup(image: str, wipe_foreign: bool) -> Manifest:
    wipe = [{"name": "WIPE_FOREIGN", "value": "true"}] if wipe_foreign else []
    return {
        "name": "setup",
        "image": image,
        "command": ["local-nvme-scratch"],
        "env": [{"name": "MOUNT_POINT", "value": SCRATCH_MOUNT}, *wipe],
        "resources": _SMALL,
        # It opens the node's disks and mounts on the node (propagation Bidirectional), which only this allows.
        "securityContext": {"privileged": True},
        "volumeMounts": [
            {"name": "dev", "mountPath": "/dev"},
            {"name": "mounts", "mountPath": _PARENT, "mountPropagation": "Bidirectional"},
            {"name": "proc", "mountPath": "/host/proc", "readOnly": True},
        ],
    }


def _witness(image: str) -> Manifest:
    return {
        "name": "witness",
        "image": image,
        "command": ["sleep", "infinity"],
        "resources": _SMALL,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _NOBODY,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        # The folder lies on the file system itself, so it is gone when that is not mounted any more.
        "readinessProbe": {"exec": {"command": ["test", "-d", SCRATCH_FOLDER]}, "periodSeconds": 10},
        "volumeMounts": [
            {"name": "mounts", "mountPath": _PARENT, "mountPropagation": "HostToContainer", "readOnly": True}
        ],
    }
