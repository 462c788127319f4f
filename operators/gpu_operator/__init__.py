"""NVIDIA GPU Operator: GPUs for pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pulumi

from components.operators import Installed, Operator, Site
from config.facts.scheduling import GPU_RESOURCE
from config.problems.errors import Problem
from config.schema.operators import MONITORING, NVIDIA_NAMESPACE, Capability, Installation
from operators.gpu_operator.component import NAME, GpuOperator
from operators.gpu_operator.problems import one_kind_of_fabric, sharing_is_the_pools
from operators.gpu_operator.settings import GpuOperatorSettings

_OFED = "network-operator"


class _GpuOperator(Operator[GpuOperatorSettings]):
    name = NAME
    title = "the GPU Operator"
    summary = "GPU driver, toolkit, device plugin."
    namespace = NVIDIA_NAMESPACE
    settings = GpuOperatorSettings
    follows = (_OFED, MONITORING)
    needs: Mapping[Capability, str] = {"node labels": "finds its nodes by its labels"}

    def provides(self, settings: GpuOperatorSettings) -> Mapping[Capability, str]:
        return {"GPUs": GPU_RESOURCE}

    def problems(self, installation: Installation) -> Iterator[Problem]:
        yield from one_kind_of_fabric(self, installation)
        yield from sharing_is_the_pools(self, installation)

    def install(self, site: Site, settings: GpuOperatorSettings, opts: pulumi.ResourceOptions) -> Installed:
        upgrades, ofed = site.settings.operators.driver_upgrades, site.installed.get(_OFED)
        return GpuOperator(self.name, site, settings, upgrades, after=ofed.followed if ofed else (), opts=opts)


OPERATOR = _GpuOperator()
