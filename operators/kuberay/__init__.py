"""KubeRay: creates the pods of teams' RayClusters, and a temporary cluster for each RayJob."""

from __future__ import annotations

from collections.abc import Mapping

from components.operators import InstallContext, Installed, Operator
from config.schema.operators import MLBATCH_NAMESPACE, Capability, QueuedOperatorSettings
from operators._lib.manifests import Changes, install

NAME = "kuberay"
UNUSED = ("raycronjobs.ray.io",)
"""CRDs that are not installed: this kind needs a feature gate, and Kueue does not queue it."""
RESOURCES = {"requests": {"memory": "100Mi"}, "limits": {"cpu": "500m", "memory": "1000Mi"}}
"""MLBatch's values (its setup.k8s/kuberay/manager_resources_patch.yaml). The tenth of a CPU in the release is too
little for the clusters of many jobs at once.
"""


class KubeRay(Installed[QueuedOperatorSettings]):
    """The release without changes to scheduling.

    KubeRay's `batchScheduler` would create gangs, but with scheduler-plugins, every RayJob fails in versions 1.5 to 1.7
    (ray-operator, controllers/ray/batchscheduler: "currently only RayCluster is supported").
    """

    def create(self, context: InstallContext, settings: QueuedOperatorSettings) -> None:
        self.followed = install(NAME, context, Changes(resources=RESOURCES, without=UNUSED), parent=self)


class _KubeRay(Operator[QueuedOperatorSettings]):
    name = NAME
    title = "KubeRay"
    summary = "RayClusters and RayJobs of teams."
    has_chart = False
    namespace = MLBATCH_NAMESPACE
    level = "baseline"
    settings = QueuedOperatorSettings
    component = KubeRay
    needs: Mapping[Capability, str] = {"queues": "runs the jobs that Kueue admits"}


OPERATOR = _KubeRay()
