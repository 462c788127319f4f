"""How members of a team read what their job has left on its volume: by a Job that mounts it for some minutes.

They make pods by jobs that queue, and by nothing else (operators/kueue/rights.py): neither `kubectl run` nor `kubectl
debug` is theirs. The Job takes no GPU, only reads, and goes by itself. A ConfigMap has its manifest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from workloads._lib.base import Run
from workloads._lib.pods import Manifest, Mount
from workloads._lib.team import QUEUED, TeamOptions

SECONDS = 300
"""For which the pod is there."""
_NEEDS = {"cpu": "100m", "memory": "128Mi"}
_NOBODY = 65534
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "runAsUser": _NOBODY,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What the level `restricted` asks for, though namespaces of teams let pods do more."""


def reading_job(
    name: str,
    scheduler: str,
    mount: Mount,
    container: Manifest,
    limits: Mapping[str, str] = _NEEDS,
    **spec: Any,
) -> Manifest:
    """Returns a Job of a team that needs no GPU, reads one volume, and is not retried."""
    made = {
        **container,
        "resources": {"requests": _NEEDS, "limits": dict(limits)},
        "securityContext": _RESTRICTED,
        "volumeMounts": [replace(mount, read_only=True).mount()],
    }
    pod = {
        "restartPolicy": "Never",
        "schedulerName": scheduler,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "containers": [made],
        "volumes": [mount.volume()],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": QUEUED},
        "spec": {"backoffLimit": 0, **spec, "template": {"spec": pod}},
    }


@dataclass(frozen=True, kw_only=True)
class Results:
    """What a job has left, and how its readers' pod is placed."""

    job: str
    """The name of the job that leaves it."""
    image: str
    """One that nodes have already: the job's own."""
    scheduler: str
    mount: Mount

    @classmethod
    def of(cls, run: Run[TeamOptions], job: str, mount: Mount) -> Results:
        """Of one run."""
        return cls(job=job, image=run.image, scheduler=run.pool.scheduler, mount=mount)

    @property
    def name(self) -> str:
        """Of the readers' Job, and of the ConfigMap with its manifest."""
        return f"{self.job}-results"

    def manifest(self) -> Manifest:
        """The Job. It is not tried again, as somebody asks again, and when it has ended nothing of it stays."""
        container = {"name": "results", "image": self.image, "command": ["sleep", str(SECONDS)]}
        return reading_job(self.name, self.scheduler, self.mount, container, ttlSecondsAfterFinished=0)

    def deploy(self, context: WorkloadContext) -> None:
        """The ConfigMap with the manifest."""
        kubernetes.core.v1.ConfigMap(
            self.name,
            metadata={"name": self.name, "namespace": context.namespace},
            data={"job": pulumi.Output.json_dumps(self.manifest(), indent=2)},
            opts=context.child(),
        )

    def command(self, namespace: pulumi.Input[str], words: Sequence[str]) -> pulumi.Output[str]:
        """One line that runs these words where the files are, once the pod is there.

        kubectl waits for a field that is not there yet, and finds a Job's pod (kubectl 1.35, pkg/cmd/wait/wait.go,
        AllowMissingKeys, and pkg/polymorphichelpers/attachablepodforobject.go).
        """
        within = pulumi.Output.concat("-n ", namespace)
        job = f"job/{self.name}"
        return pulumi.Output.concat(
            *("kubectl get configmap ", within, f" {self.name} -o jsonpath='{{.data.job}}' | "),
            *("kubectl apply ", within, " -f - && "),
            *("kubectl wait ", within, f" --timeout=10m --for=jsonpath='{{.status.ready}}'=1 {job} && "),
            *("kubectl exec ", within, f" {job} -- ", " ".join(words)),
        )
