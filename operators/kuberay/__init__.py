"""KubeRay: Ray on teams' GPUs, as clusters of pods that Kueue lets begin."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from components.operators import Installed, Operator, Site
from config.schema.operators import MLBATCH_NAMESPACE, Capability, QueuedOperatorSettings
from operators.kuberay.component import NAME, KubeRay


class _KubeRay(Operator[QueuedOperatorSettings]):
    name = NAME
    title = "KubeRay"
    summary = "RayClusters and RayJobs of teams."
    has_chart = False
    namespace = MLBATCH_NAMESPACE
    level = "baseline"
    settings = QueuedOperatorSettings
    needs: Mapping[Capability, str] = {"queues": "runs what its queues admit"}

    def install(self, site: Site, settings: QueuedOperatorSettings, opts: pulumi.ResourceOptions) -> Installed:
        return KubeRay(self.name, site, opts)


OPERATOR = _KubeRay()
