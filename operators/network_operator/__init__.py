"""NVIDIA Network Operator: InfiniBand for pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pulumi

from components.operators import Installed, Operator, Site
from config.problems.errors import Problem
from config.schema.models import StackFile
from config.schema.operators import NVIDIA_NAMESPACE, Capability, Installation
from operators.network_operator.component import NAME, NetworkOperator
from operators.network_operator.settings import NetworkOperatorSettings, autoscaler_problems


class _NetworkOperator(Operator[NetworkOperatorSettings]):
    name = NAME
    title = "the Network Operator"
    summary = "OFED and RDMA devices; installed where a pool has InfiniBand."
    namespace = NVIDIA_NAMESPACE
    settings = NetworkOperatorSettings
    needs: Mapping[Capability, str] = {"node labels": "finds its nodes by its labels"}

    def provides(self, settings: NetworkOperatorSettings) -> Mapping[Capability, str]:
        return {"InfiniBand": settings.resource_name}

    def problems(self, installation: Installation) -> Iterator[Problem]:
        """A name that the autoscaler does not understand."""
        yield from autoscaler_problems(installation, installation.stack.operators.of(self).rdma_resource)

    def is_wanted(self, stack: StackFile) -> bool:
        """Where a pool has InfiniBand."""
        has_infiniband = any(pool.sku.infiniband for pool in stack.gpu_pools().values())
        return has_infiniband and stack.operators.of(self).enabled

    def install(self, site: Site, settings: NetworkOperatorSettings, opts: pulumi.ResourceOptions) -> Installed:
        return NetworkOperator(self.name, site, settings, site.settings.operators.driver_upgrades, opts)


OPERATOR = _NetworkOperator()
