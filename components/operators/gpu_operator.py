"""NVIDIA GPU Operator: driver, container toolkit and device plugin of GPU nodes."""

from __future__ import annotations

from collections.abc import Iterable

import pulumi

from components._base import Component
from components.operators._release import Site, Values, release
from components.operators.readiness import CustomResourceName, once_ready
from config.models import Operator
from config.scheduling import GPU_RESOURCE_TOLERATION, SYSTEM_NODES, SYSTEM_TOLERATIONS, tolerations

NAME = "gpu-operator"
POLICY = CustomResourceName("nvidia.com/v1", "ClusterPolicy", "cluster-policy")
"""Made by the chart."""


class GpuOperator(Component):
    """The release, which makes the ClusterPolicy too.

    It follows the NicClusterPolicy's creation and not its readiness: the driver pod waits for OFED by itself, once the
    Network Operator has labelled its node, so that images are pulled while OFED compiles.
    """

    def __init__(
        self,
        name: str,
        site: Site,
        settings: Operator,
        *,
        nic_policy: pulumi.Resource | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        self.release = release(
            NAME,
            site,
            parent=self,
            values=values(site.taints, rdma=nic_policy is not None),
            user_values=settings.values,
            depends_on=[nic_policy] if nic_policy else (),
        )
        self.register_outputs({})

    def ready(self, after: list[pulumi.Resource]) -> pulumi.Resource:
        """Done when every GPU node has its driver and device plugin; `after` is what makes those nodes."""
        return once_ready(POLICY, parent=self, depends_on=[self.release, *after])


def values(taints: Iterable[str], *, rdma: bool) -> Values:
    """Values of the chart. `rdma` loads nvidia-peermem, which waits for OFED: never where nothing installs that.

    It waits on every node, so the settings refuse pools with InfiniBand beside pools without, unless they turn it off.
    """
    return {
        "nfd": {"enabled": False},
        "operator": {"nodeSelector": SYSTEM_NODES, "tolerations": SYSTEM_TOLERATIONS},
        "daemonsets": {"tolerations": [GPU_RESOURCE_TOLERATION, *tolerations(taints)]},
        "driver": {"enabled": True, "rdma": {"enabled": rdma}},
        "toolkit": {"enabled": True},
        # Partitions and virtual machines, which AKS nodes do not have (Azure/ai-infrastructure-on-azure).
        "migManager": {"enabled": False},
        "vgpuDeviceManager": {"enabled": False},
        "vfioManager": {"enabled": False},
        "sandboxDevicePlugin": {"enabled": False},
    }
