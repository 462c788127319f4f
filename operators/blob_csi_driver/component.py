"""The blob CSI driver from its chart: what mounts blob containers, where AKS's own add-on is not wanted.

Both have the same names, and a cluster has one: `storage.driver` chooses. From the add-on to the chart, AKS takes its
driver away before the chart comes. From the chart to the add-on, `none` has to come between.
"""

from __future__ import annotations

import pulumi

from components.operators import Installed, Site
from config.facts.scheduling import ANY_TAINT, SYSTEM_NODES, SYSTEM_TOLERATIONS
from config.schema.operators import ChartSettings
from operators._release import Values, release

NAME = "blob-csi-driver"
NAMESPACE = "kube-system"
"""Where its objects are looked for (kubernetes-sigs/blob-csi-driver, charts/README.md)."""


class BlobCsiDriver(Installed):
    """The release."""

    def __init__(
        self, name: str, site: Site, settings: ChartSettings, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        release(NAME, site, parent=self, values=values(), user_values=settings.values, namespace=NAMESPACE)
        self.register_outputs({})


def values() -> Values:
    """Values of the chart: mounting happens on every node, whatever its taints, and by blobfuse2 alone."""
    return {
        # The controller makes volumes, and those of this program are there already. Two would need two system nodes.
        "controller": {"replicas": 1, "nodeSelector": SYSTEM_NODES, "tolerations": SYSTEM_TOLERATIONS},
        "node": {"tolerations": ANY_TAINT, "enableAznfsMount": False},
    }
