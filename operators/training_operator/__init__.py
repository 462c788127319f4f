"""Kubeflow's training operator: PyTorchJobs of teams, whose pods are a gang of the stack's scheduler."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from components.operators import Installed, Operator, Site
from config.schema.operators import MLBATCH_NAMESPACE, Capability, QueuedOperatorSettings
from operators.training_operator.component import NAME, TrainingOperator


class _TrainingOperator(Operator[QueuedOperatorSettings]):
    name = NAME
    title = "the training operator"
    summary = "Kubeflow's, of version 1, for PyTorchJobs of teams."
    has_chart = False
    namespace = MLBATCH_NAMESPACE
    level = "baseline"
    settings = QueuedOperatorSettings
    needs: Mapping[Capability, str] = {"queues": "runs what its queues admit"}
    follows = ("scheduler-plugins", "volcano")  # whose gangs it makes

    def install(self, site: Site, settings: QueuedOperatorSettings, opts: pulumi.ResourceOptions) -> Installed:
        return TrainingOperator(self.name, site, opts)


OPERATOR = _TrainingOperator()
