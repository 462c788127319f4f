"""Kubeflow's training operator: creates the pods of a PyTorchJob as a gang of the stack's scheduler. Each pod gets its
rank and the address of rank 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from components.images import mirrored
from components.operators import InstallContext, Installed, Operator
from config.schema.operators import MLBATCH_NAMESPACE, Capability, QueuedOperatorSettings
from operators._lib.manifests import Changes, install

NAME = "training-operator"
KIND = "pytorchjob"
"""The kind of jobs that the operator runs. Kueue does not queue its other kinds, which members may not create."""
OTHERS = tuple(f"{kind}s.kubeflow.org" for kind in ("jaxjob", "mpijob", "paddlejob", "tfjob", "xgboostjob"))
WAITING_IMAGE = "docker.io/library/alpine:3.10"
"""The full reference of `alpine:3.10`, the init container that waits for the master (pkg/config/config.go)."""

_TRY_S = 2
"""The interval between two attempts (pkg/controller.v1/pytorch/initcontainer.go)."""


class TrainingOperator(Installed[QueuedOperatorSettings]):
    """The release, for PyTorchJobs only. When the operator starts, it looks for the CRD of the scheduler's gangs."""

    def create(self, context: InstallContext, settings: QueuedOperatorSettings) -> None:
        schedulers = [each for other in context.installed.values() for each in other.webhooks]
        own = arguments(context.scheduler, context.settings.images.registry, context.settings.operators.warm_up_minutes)
        changes = Changes(arguments=own, without=OTHERS)
        self.followed = install(NAME, context, changes, parent=self, after=schedulers)


def arguments(scheduler: str | None, registry: str | None, warm_up_minutes: int) -> list[str]:
    """Returns the operator's arguments: the scheduler of gangs, if any, and the init container of waiting workers.

    Workers wait until the master's name resolves. This includes the pull of the master's image, because a Service only
    has addresses of Ready pods (pkg/controller.v1/common/service.go). With upstream's 100 attempts, workers would fail
    after 200 s. The operator uses Coscheduling for every scheduler except Volcano (cmd/training-operator.v1/main.go).
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
    summary = "Kubeflow's training operator, version 1, for PyTorchJobs of teams."
    has_chart = False
    namespace = MLBATCH_NAMESPACE
    level = "baseline"
    settings = QueuedOperatorSettings
    component = TrainingOperator
    needs: Mapping[Capability, str] = {"queues": "runs the jobs that Kueue admits"}
    follows = ("scheduler-plugins", "volcano")  # the operator creates their gang objects


OPERATOR = _TrainingOperator()
