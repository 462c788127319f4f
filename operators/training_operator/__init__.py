"""Kubeflow's training operator: makes the pods of a PyTorchJob, each with its rank and the address of the first.

The pods are a gang of the stack's scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping

from components.images import mirrored
from components.operators import Installed, Operator, Site
from config.schema.operators import MLBATCH_NAMESPACE, Capability, QueuedOperatorSettings
from operators._lib.manifests import Changes, install

NAME = "training-operator"
KIND = "pytorchjob"
"""The kind of jobs that it runs: of its others Kueue queues none here, and members of teams may make none."""
OTHERS = tuple(f"{kind}s.kubeflow.org" for kind in ("jaxjob", "mpijob", "paddlejob", "tfjob", "xgboostjob"))
"""Their CRDs."""
WAITING_IMAGE = "docker.io/library/alpine:3.10"
"""The one whose nslookup waits for the master in pods of workers (pkg/config/config.go): `alpine:3.10`, spelt out."""

_TRY_S = 2
"""Between two tries (pkg/controller.v1/pytorch/initcontainer.go)."""


class TrainingOperator(Installed[QueuedOperatorSettings]):
    """The release, for one kind of jobs. It looks for the kind of the scheduler's gangs when it starts."""

    def create(self, site: Site, settings: QueuedOperatorSettings) -> None:
        schedulers = [each for other in site.installed.values() for each in other.webhooks]
        own = arguments(site.scheduler, site.settings.images.registry, site.settings.operators.warm_up_minutes)
        changes = Changes(arguments=own, without=OTHERS)
        self.followed = install(NAME, site, changes, parent=self, after=schedulers)


def arguments(scheduler: str | None, registry: str | None, warm_up_minutes: int) -> list[str]:
    """Whose gangs it makes, where there is a scheduler of gangs, and how workers wait for the master, with what.

    They wait until its name can be looked up, which is once its node has pulled its image: of the Service in front of
    it only a pod that is Ready has an address (pkg/controller.v1/common/service.go). Upstream's 100 tries are over
    after 200 s, and then the pod has failed. Every scheduler's name but Volcano's is that of one with Coscheduling
    (cmd/training-operator.v1/main.go).
    """
    gangs = [f"--gang-scheduler-name={scheduler}"] if scheduler else []
    return [
        f"--enable-scheme={KIND}",
        f"--pytorch-init-container-image={mirrored(WAITING_IMAGE, registry)}",
        f"--pytorch-init-container-max-tries={warm_up_minutes * 60 // _TRY_S}",
        *gangs,
    ]


class _TrainingOperator(Operator[QueuedOperatorSettings]):
    name = NAME
    title = "the training operator"
    summary = "Kubeflow's, of version 1, for PyTorchJobs of teams."
    has_chart = False
    namespace = MLBATCH_NAMESPACE
    level = "baseline"
    settings = QueuedOperatorSettings
    component = TrainingOperator
    needs: Mapping[Capability, str] = {"queues": "runs what its queues admit"}
    follows = ("scheduler-plugins", "volcano")  # whose gangs it makes


OPERATOR = _TrainingOperator()
