"""KubeRay: Ray on teams' GPUs, as clusters of pods that Kueue lets begin."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from components.operators import Installed, Operator, Site
from config.schema.operators import MLBATCH_NAMESPACE, Capability, OperatorSettings
from operators.kuberay.component import NAME, KubeRay


class KubeRaySettings(OperatorSettings):
    """It is off unless it is asked for, as the queues that it is for."""

    enabled: bool = False
    """Whether the stack has it."""


class _KubeRay(Operator[KubeRaySettings]):
    name = NAME
    title = "KubeRay"
    summary = "RayClusters and RayJobs of teams."
    has_chart = False
    namespace = MLBATCH_NAMESPACE
    level = "baseline"
    settings = KubeRaySettings
    needs: Mapping[Capability, str] = {"queues": "runs what its queues admit"}

    def install(self, site: Site, settings: KubeRaySettings, opts: pulumi.ResourceOptions) -> Installed:
        return KubeRay(self.name, site, opts)


OPERATOR = _KubeRay()
