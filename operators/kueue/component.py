"""Kueue: holds jobs back until their team's quota, or what others lend it, has room for all of their pods."""

from __future__ import annotations

import pulumi
import yaml

from components.operators import Installed, Site
from config.facts.scheduling import SYSTEM_NODES, SYSTEM_PRIORITY, SYSTEM_TOLERATIONS, TEAM_LABELS
from config.schema.operators import MONITORING, Operators
from operators._release import Values, release
from operators.kueue.rights import FRAMEWORKS
from operators.kueue.settings import KueueSettings
from operators.kueue.teams import Teams

NAME = "kueue"
UNCOUNTED = ("ephemeral-storage",)
"""What a job may ask for beside its quota. Of a resource that no quota has Kueue admits none, ever (0.19.2,
pkg/scheduler/flavorassigner/flavorassigner.go:1071, "unavailable in ClusterQueue"); nodes have this by themselves.
"""

MEMORY = "2Gi"
"""The manager's memory limit: it caches all Workloads and, with a topology, all pods and nodes. The value is that of
upstream's example for TopologyAwareScheduling (kubernetes-sigs/kueue, charts/kueue/README.md); the chart has 512Mi.
"""
DAY_MINUTES, PAUSE_MINUTES = 24 * 60, 30


class Kueue(Installed):
    """The release, and the teams that queue by it."""

    def __init__(
        self, name: str, site: Site, settings: KueueSettings, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        before = [each for other in site.installed.values() for each in other.followed]
        own = values(site.settings.operators.warm_up_minutes, monitored=MONITORING in site.installed)
        installed = release(NAME, site, parent=self, values=own, user_values=settings.values, depends_on=before)
        self.followed = [installed]
        if site.settings.teams or site.settings.slack_gpus:
            Teams("teams", site.settings, site.scheduler, installed, settings.topology, opts=self.child())
        self.register_outputs({})


def values(warm_up_minutes: int = Operators().warm_up_minutes, *, monitored: bool = False) -> Values:
    """Values of the chart: it runs on the system pool, with a configuration of which nothing is left to defaults that
    change with its versions. `monitored` brings its ServiceMonitor, whose kind has to be there.
    """
    text = yaml.safe_dump(configuration(warm_up_minutes), sort_keys=False)
    return {
        "controllerManager": {
            "nodeSelector": SYSTEM_NODES,
            "tolerations": SYSTEM_TOLERATIONS,
            "manager": {"priorityClassName": SYSTEM_PRIORITY, "resources": {"limits": {"memory": MEMORY}}},
        },
        "managerConfig": {"controllerManagerConfigYaml": text},
        **({"enablePrometheus": True} if monitored else {}),
    }


def configuration(warm_up_minutes: int) -> Values:
    """What Kueue 0.19 reads (its apis/config/v1beta2).

    Kinds of jobs whose CRD is not there are waited for: it may come later. In namespaces of teams a job without a queue
    never starts; elsewhere Kueue leaves all jobs alone. What has room is admitted; whose pods are not ready in time
    goes back into its queue, and waits longer each time.
    """
    # AppWrappers as many at once as Jobs: one by one, the first of many starts when the last has its Workload.
    jobs = {"Job.batch": 5, "AppWrapper.workload.codeflare.dev": 5}
    timeout = warm_up_minutes + 10  # else Kueue would take from AppWrapper what that still waits for
    concurrency = {**jobs, "Workload.kueue.x-k8s.io": 10, "LocalQueue.kueue.x-k8s.io": 5}
    requeuing = {
        "timestamp": "Eviction",
        "backoffBaseSeconds": 60,
        "backoffMaxSeconds": PAUSE_MINUTES * 60,
        "backoffLimitCount": requeue_limit(timeout),
    }
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443", "enableClusterQueueResources": True},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "controller": {"groupKindConcurrency": {**concurrency, "ClusterQueue.kueue.x-k8s.io": 5}},
        "clientConnection": {"qps": 300, "burst": 500},
        "integrations": {"frameworks": list(FRAMEWORKS)},
        "resources": {"excludeResourcePrefixes": [*UNCOUNTED]},
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": {"matchLabels": TEAM_LABELS},
        "waitForPodsReady": {
            "timeout": f"{timeout}m",
            # Disabled: AppWrapper restarts its own jobs, and Kueue may never release the quota of a job that it evicts
            # meanwhile (kubernetes-sigs/kueue#14811). Its default is `timeout`.
            "recoveryTimeout": "0s",
            "blockAdmission": False,
            "requeuingStrategy": requeuing,
        },
        # Both may preempt in an endless loop (kubernetes-sigs/kueue#14543); the alert PreemptionLoop reports that.
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
    }


def requeue_limit(timeout_minutes: int) -> int:
    """Returns after how many requeues Kueue deactivates a job whose pods are never ready: at least a day of attempts.

    Each attempt takes the timeout and then a pause, which doubles from one minute to `PAUSE_MINUTES`. Three more
    attempts make up for the first, shorter pauses. Kueue clears the count only when it deactivates the job (0.19.2,
    pkg/controller/core/workload_controller.go).
    """
    return -(-DAY_MINUTES // (timeout_minutes + PAUSE_MINUTES)) + 3
