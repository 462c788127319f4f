"""The training operator: makes the pods of a PyTorchJob, each with its rank and the address of the first."""

from __future__ import annotations

import pulumi

from components.images import mirrored
from components.operators import Installed, Site
from operators._manifests import Changes, install

NAME = "training-operator"
KIND = "pytorchjob"
"""The kind of jobs that it runs: of its others Kueue queues none here, and members of teams may make none."""
OTHERS = tuple(f"{kind}s.kubeflow.org" for kind in ("jaxjob", "mpijob", "paddlejob", "tfjob", "xgboostjob"))
"""Their CRDs."""
WAITING_IMAGE = "docker.io/library/alpine:3.10"
"""The one whose nslookup waits for the master in pods of workers (pkg/config/config.go): `alpine:3.10`, spelt out."""


class TrainingOperator(Installed):
    """The release, for one kind of jobs. It looks for the kind of the scheduler's gangs when it starts."""

    def __init__(self, name: str, site: Site, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        schedulers = [each for other in site.installed.values() for each in other.webhooks]
        changes = Changes(arguments=arguments(site.scheduler, site.settings.images.registry), without=OTHERS)
        self.followed = install(NAME, site, changes, parent=self, after=schedulers)
        self.register_outputs({})


def arguments(scheduler: str | None, registry: str | None) -> list[str]:
    """Whose gangs it makes, where there is a scheduler of gangs, and from where workers have what waits for the master.

    Every name but Volcano's is that of a scheduler with Coscheduling to it (cmd/training-operator.v1/main.go).
    """
    gangs = [f"--gang-scheduler-name={scheduler}"] if scheduler else []
    return [f"--enable-scheme={KIND}", f"--pytorch-init-container-image={mirrored(WAITING_IMAGE, registry)}", *gangs]
