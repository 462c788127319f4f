"""Lets members of a team read a job's results: a second Job mounts the volume of the results for some minutes.

Members may only create pods through queued jobs: `kubectl run` and `kubectl debug` are forbidden
(operators/kueue/rights.py). A ConfigMap contains the second Job, which requests no GPU and only reads.
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
"""Security context for `restricted`, although teams' namespaces allow more."""


def reading_job(
    name: str,
    scheduler: str,
    mount: Mount,
    container: Manifest,
    limits: Mapping[str, str] = _NEEDS,
    **spec: Any,
) -> Manifest:
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
    """A job's results, and the placement of the Job that reads them."""

    job: str
    image: str
    """The image of the job that wrote the results. Nodes already have it."""
    scheduler: str
    mount: Mount

    @classmethod
    def of(cls, run: Run[TeamOptions], job: str, mount: Mount) -> Results:
        return cls(job=job, image=run.image, scheduler=run.pool.scheduler, mount=mount)

    @property
    def name(self) -> str:
        return f"{self.job}-results"

    def manifest(self) -> Manifest:
        """Returns the Job. It has no retries, because users can run it again, and is deleted when it ends."""
        container = {"name": "results", "image": self.image, "command": ["sleep", str(SECONDS)]}
        return reading_job(self.name, self.scheduler, self.mount, container, ttlSecondsAfterFinished=0)

    def deploy(self, context: WorkloadContext) -> None:
        kubernetes.core.v1.ConfigMap(
            self.name,
            metadata={"name": self.name, "namespace": context.namespace},
            data={"job": pulumi.Output.json_dumps(self.manifest(), indent=2)},
            opts=context.child(),
        )

    def command(self, namespace: pulumi.Input[str], words: Sequence[str]) -> pulumi.Output[str]:
        """Returns a command line that creates the Job, waits until its pod is ready, and runs `words` there.

        kubectl waits for fields that do not exist yet, and finds a Job's pod (kubectl 1.35, pkg/cmd/wait/wait.go,
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
