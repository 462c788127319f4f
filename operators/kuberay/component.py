"""KubeRay: makes the pods of a RayCluster, and a cluster for each RayJob, which goes with it."""

from __future__ import annotations

import pulumi

from components.operators import Installed, Site
from operators._manifests import Changes, install

NAME = "kuberay"
UNUSED = ("raycronjobs.ray.io",)
"""The CRD of what the operator does only behind a feature gate, and Kueue does not queue."""
RESOURCES = {"requests": {"memory": "100Mi"}, "limits": {"cpu": "500m", "memory": "1000Mi"}}
"""As MLBatch has them (its setup.k8s/kuberay/manager_resources_patch.yaml): a tenth of a CPU, as released, is little
for the clusters of many jobs at once.
"""


class KubeRay(Installed):
    """The release, as upstream has it: it schedules nothing.

    Its `batchScheduler` would make gangs, and as of 1.5 to 1.7 fail every RayJob with scheduler-plugins (there, in
    pkg of ray-operator, controllers/ray/batchscheduler: "currently only RayCluster is supported").
    """

    def __init__(self, name: str, site: Site, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        self.followed = install(NAME, site, Changes(resources=RESOURCES, without=UNUSED), parent=self)
        self.register_outputs({})
