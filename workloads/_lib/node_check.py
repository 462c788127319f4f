"""Builds the check of a node before a job starts there: an init container with the job's devices."""

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
"""Exit code of a check that has tainted its bad node (docker/aksnhc/check-node.sh)."""
SCRIPT = "/opt/aksnhc/check-node.sh"
NODE_NAME = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
KERNEL_LOGS = "/host/var/log"
_TIMEOUT_S = {"light": 120, "full": 600}
_SHARED = ("shm", "files")
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def kernel_logs() -> Mount:
    """Returns the mount of the node's logs, which two checks search for GPU errors and flapping links.

    It mounts the folder, because the log's name differs (syslog on Ubuntu, else messages) and logs are rotated.
    """
    source = {"hostPath": {"path": "/var/log", "type": "Directory"}}
    return Mount(name="kernel-logs", path=KERNEL_LOGS, source=source, read_only=True)


def _token() -> Mount:
    """Returns the mount of a token. Only the check gets it, because the job's programs must not change nodes."""
    ca = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}
    return Mount(name="check-token", path=_ACCOUNT, source={"projected": {"sources": [token, ca]}}, read_only=True)


def taint_variables(taint_effect: str | None, *, everything: bool) -> dict[str, str]:
    if taint_effect is None:
        return {}
    return {"TAINT_EFFECT": taint_effect, **({"ALL": "true"} if everything else {})}


@dataclass(frozen=True, kw_only=True)
class NodeCheck:
    depth: NodeCheckDepth
    image: str
    taint_effect: str
    of_team: bool
    """Whether the job runs in a team's namespace, where pods may not mount host folders (logs)."""

    def added(self, template: Manifest, pool: GpuPool, gpus: int | None, topology: str) -> Manifest:
        """Returns the pod template with the check as first init container, which gets the first container's devices.

        `gpus` is the number of the pod's GPUs, or None for all devices of a node. `topology` is the path of NCCL's
        topology file in the pod, or empty.
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
            out |= {"check_nccl_allreduce_ib_loopback"}  # without a topology, results are not comparable
        return {
            "CHECKS": configuration(pool.sku, topology, out, gpus=gpus),
            "BEFORE_JOB": "true",
            "TIMEOUT_S": str(_TIMEOUT_S[self.depth]),
            **({} if self.of_team else {"KERNEL_LOGS": KERNEL_LOGS}),
            **taint_variables(self.taint_effect, everything=self.depth == "full" and not out),
        }


def failure_rules(template: Manifest) -> list[Manifest]:
    """Returns the podFailurePolicy rules of a Job with these pods, which ignore failures of the check on a bad node.

    If the check cannot taint the node, its failure counts: otherwise the pod could return to that node forever.
    """
    names = [each["name"] for each in template["spec"].get("initContainers", [])]
    exit_codes = {"containerName": CONTAINER, "operator": "In", "values": [FAILED]}
    return [{"action": "Ignore", "onExitCodes": exit_codes}] if CONTAINER in names else []
