"""Local NVMe scratch: one file system of all local NVMe disks of a node, mounted on the node itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from components.operators import InstallContext, Installed, Operator
from config.data.scheduling import ANY_TAINT, SCRATCH_FOLDER, SCRATCH_LABEL, SCRATCH_MOUNT
from config.problems.errors import Problem
from config.problems.fixes import set_command
from config.schema.models import StackFile
from config.schema.operators import NODE_TOOLS_NAMESPACE, Capability, Installation, OperatorSettings
from operators._lib.node_tools import CONFINED, UNPRIVILEGED, Manifest, daemon_set

NAME = "local-nvme-scratch"
_PARENT = str(PurePosixPath(SCRATCH_MOUNT).parent)
_SMALL = {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}}


class LocalNvmeScratchSettings(OperatorSettings):
    """Settings for the disks of local NVMe scratch."""

    wipe_foreign: bool = False
    """Whether to wipe local NVMe disks with other data (LVM, RAID, file systems, partition tables), on all nodes. By
    default, the setup of scratch fails on such disks. Disks in use are never wiped.
    """


class LocalNvmeScratch(Installed[LocalNvmeScratchSettings]):
    """The DaemonSet on nodes with the label of scratch. Its pod is Ready when scratch is mounted."""

    def create(self, context: InstallContext, settings: LocalNvmeScratchSettings) -> None:
        daemon_set(NAME, context, pod_spec(context.image(NAME), wipe_foreign=settings.wipe_foreign), parent=self)


def pod_spec(image: str, *, wipe_foreign: bool = False) -> dict[str, Any]:
    """Returns a pod whose init container creates and mounts the file system, and whose main container watches the
    mount.

    The file system stays mounted when the pod is deleted: jobs use it, and the next pod finds it.
    """
    return {
        "nodeSelector": {SCRATCH_LABEL: "true"},
        "tolerations": ANY_TAINT,
        # Jobs on the node wait for this pod, so it must not wait for resources.
        "priorityClassName": "system-node-critical",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "initContainers": [_setup(image, wipe_foreign)],
        "containers": [_watcher(image)],
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
        # The container opens the node's disks and mounts on the node (propagation Bidirectional).
        "securityContext": {"privileged": True},
        "volumeMounts": [
            {"name": "dev", "mountPath": "/dev"},
            {"name": "mounts", "mountPath": _PARENT, "mountPropagation": "Bidirectional"},
            {"name": "proc", "mountPath": "/host/proc", "readOnly": True},
        ],
    }


def _watcher(image: str) -> Manifest:
    return {
        "name": "witness",
        "image": image,
        "command": ["sleep", "infinity"],
        "resources": _SMALL,
        "securityContext": {"runAsNonRoot": True, "runAsUser": UNPRIVILEGED["runAsUser"], **CONFINED},
        # The folder is on the scratch file system, so it only exists if that is mounted.
        "readinessProbe": {"exec": {"command": ["test", "-d", SCRATCH_FOLDER]}, "periodSeconds": 10},
        "volumeMounts": [
            {"name": "mounts", "mountPath": _PARENT, "mountPropagation": "HostToContainer", "readOnly": True}
        ],
    }


class _LocalNvmeScratch(Operator[LocalNvmeScratchSettings]):
    name = NAME
    title = "local NVMe scratch"
    summary = "Creates and mounts NVMe scratch on pools that have it."
    has_chart = False
    namespace = NODE_TOOLS_NAMESPACE
    settings = LocalNvmeScratchSettings
    component = LocalNvmeScratch

    def provides(self, settings: LocalNvmeScratchSettings) -> Mapping[Capability, str]:
        return {"NVMe scratch": SCRATCH_FOLDER}

    def is_wanted(self, stack: StackFile) -> bool:
        return stack.operators.of(self).enabled and any(pool.scratch for pool in stack.gpu_pools().values())

    def problems(self, installation: Installation) -> Iterator[Problem]:
        if installation.stack.operators.of(self).enabled:
            return
        path = ("operators", "localNvmeScratch", "enabled")
        for key, pool in installation.stack.pools.items():
            if pool.local_nvme_scratch:
                what = f"is false, but pools.{key}.localNvmeScratch needs this operator"
                yield Problem(path, what, f"true, or a pool {key} without localNvmeScratch", set_command(path, True))


OPERATOR = _LocalNvmeScratch()
