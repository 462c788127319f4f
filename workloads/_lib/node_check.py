"""The check of a node before a job begins there: an init container on the devices that the job gets. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from components.context import GpuPool
from config.data.scheduling import HEALTH_ACCOUNT
from config.schema.workload import NodeCheckDepth
from workloads._lib.aznhc import LOGS, MEASURES, configuration
from workloads._lib.pods import Manifest, Mount, environment

CONTAINER = "node-check"
FAILED = 1
"""Its exit code on a node that is bad, and tainted (docker/aksnhc/check-node.sh)."""
SCRIPT = "/opt/aksnhc/check-node.sh"
NODE_NAME = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
KERNEL_LOGS = "/host/var/log"
_TIMEOUT_S = {"light": 120, "full": 600}
_SHARED = ("shm", "files")
"""Volumes of the job that the check needs too."""
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def kernel_logs() -> Mount:
    """The node's logs, in which two checks look for GPU errors and flapping links.

    The folder, because the file's name differs (syslog on Ubuntu, messages elsewhere), and logs are put aside.
    """
    source = {"hostPath": {"path": "/var/log", "type": "Directory"}}
    return Mount(name="kernel-logs", path=KERNEL_LOGS, source=source, read_only=True)


def _token() -> Mount:
    """What every pod has by default, for the check alone: the job's own programs may not change a node."""
    ca = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}
    return Mount(name="check-token", path=_ACCOUNT, source={"projected": {"sources": [token, ca]}}, read_only=True)


def told(taint_effect: str | None, *, everything: bool) -> dict[str, str]:
    """Variables of a check that may tell of its node, which is well again if it passes `everything`."""
    if taint_effect is None:
        return {}
    return {"TAINT_EFFECT": taint_effect, **({"ALL": "true"} if everything else {})}


@dataclass(frozen=True, kw_only=True)
class NodeCheck:
    """Of one workload."""

    depth: NodeCheckDepth
    image: str
    taint_effect: str
    """Of the taint of a node that fails."""
    of_team: bool
    """Its pods may mount no folder of their node, and so not see its log."""

    def added(self, template: Manifest, pool: GpuPool, gpus: int | None, topology: str) -> Manifest:
        """The pod template with the check as its first init container, on the devices of the first container.

        `gpus` are those that the pod takes, None being all of a whole node's devices; `topology` is where it sees
        NCCL's topology file, empty where it does not.
        """
        spec: dict[str, Any] = template["spec"]
        main = spec["containers"][0]
        mounts = [_token(), *([] if self.of_team else [kernel_logs()])]
        shared = [mount for mount in main["volumeMounts"] if mount["name"] in _SHARED]
        check = {
            "name": CONTAINER,
            "image": self.image,
            "command": ["/bin/bash", SCRIPT],
            "env": [*environment(self._variables(pool, gpus, topology)), NODE_NAME],
            "resources": main["resources"],
            "volumeMounts": [*shared, *(mount.mount() for mount in mounts)],
            **({"securityContext": main["securityContext"]} if "securityContext" in main else {}),
        }
        return {
            **template,
            "spec": {
                "automountServiceAccountToken": False,
                "serviceAccountName": HEALTH_ACCOUNT,
                **spec,
                "initContainers": [check, *spec.get("initContainers", [])],
                "volumes": [*spec["volumes"], *(mount.volume() for mount in mounts)],
            },
        }

    def _variables(self, pool: GpuPool, gpus: int | None, topology: str) -> dict[str, str]:
        out = {*(() if self.depth == "full" else MEASURES), *(LOGS if self.of_team else ())}
        if pool.sku.health.ib_loopback_gbs is not None and not topology:
            out |= {"check_nccl_allreduce_ib_loopback"}  # without the file, it would measure something else
        return {
            "CHECKS": configuration(pool.sku, topology, out, gpus=gpus),
            "BEFORE_JOB": "true",
            "TIMEOUT_S": str(_TIMEOUT_S[self.depth]),
            **({} if self.of_team else {"KERNEL_LOGS": KERNEL_LOGS}),
            **told(self.taint_effect, everything=self.depth == "full" and not out),
        }


def failure_rules(template: Manifest) -> list[Manifest]:
    """Of the podFailurePolicy of a Job of such pods: a node that turns out to be bad is no failure of the job.

    One that nobody could taint is, with another exit code: its pod would come back to it for ever.
    """
    names = [each["name"] for each in template["spec"].get("initContainers", [])]
    exit_codes = {"containerName": CONTAINER, "operator": "In", "values": [FAILED]}
    return [{"action": "Ignore", "onExitCodes": exit_codes}] if CONTAINER in names else []
