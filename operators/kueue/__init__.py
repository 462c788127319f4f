"""Kueue: queues a job until the team's quota, with quota that other teams lend, is enough for all pods of the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import yaml

from components.operators import InstallContext, Installed, Operator
from config.data.scheduling import ON_SYSTEM_POOL, SYSTEM_PRIORITY, TEAM_LABELS
from config.problems.errors import Problem
from config.problems.fixes import Path, set_command
from config.schema.operators import MLBATCH_NAMESPACE, MONITORING, Capability, ChartSettings, Installation, Operators
from operators._lib.release import Values, release
from operators.kueue.rights import FRAMEWORKS
from operators.kueue.teams import Teams

_TOPOLOGY: Path = ("operators", "kueue", "topology")
_NEEDED = (
    ("kueue", "kueue", "Kueue uses the topology"),
    ("node-labeler", "nodeLabeler", "the node labeler sets the labels of the topology"),
)
NAME = "kueue"
UNCOUNTED = ("ephemeral-storage",)
"""Resources that jobs may request without a quota, because every node has them. Kueue never admits a job that requests
another resource without a quota (0.19.2, pkg/scheduler/flavorassigner/flavorassigner.go:1071, "unavailable in
ClusterQueue").
"""

MEMORY = "2Gi"
"""The memory limit of the manager, which caches all Workloads and, with a topology, all pods and nodes. The value is
from upstream's example for TopologyAwareScheduling (kubernetes-sigs/kueue, charts/kueue/README.md); the chart has
512Mi.
"""
DAY_MINUTES, PAUSE_MINUTES = 24 * 60, 30


class KueueSettings(ChartSettings):
    """Settings of Kueue. It is off by default, because a cluster with one user does not need quotas."""

    enabled: bool = False
    """Whether the stack installs it."""
    topology: bool = False
    """Whether Kueue knows which GPU nodes reach each other over InfiniBand, so that jobs can ask for such nodes."""


def topology_problems(installation: Installation) -> Iterator[Problem]:
    """Yields a problem for each setting that does not work with a topology.

    Kueue skips nodes without the topology's label (0.19.2, pkg/util/tas, NodeMatchesFlavor), and only considers
    existing nodes. For new nodes, it would need ProvisioningRequests (keps/2724-topology-aware-scheduling, "support
    Cluster Autoscaler without ProvisioningRequest" is not a goal).

    Both schedulers work: Kueue selects a pod's node while the pod has a scheduling gate, and Volcano also skips pods
    with a gate (1.15.1, pkg/scheduler/actions/allocate/allocate.go, SchGated).
    """
    stack = installation.stack
    for name, key, why in _NEEDED:
        if not stack.operators.of(installation.operators[name]).enabled:
            path: Path = ("operators", key, "enabled")
            what = f"is false, but operators.kueue.topology is true, and {why}"
            yield Problem(path, what, "true, or operators.kueue.topology false", set_command(path, True))
    pools = stack.gpu_pools()
    without = [key for key, pool in pools.items() if not pool.sku.infiniband]
    scaled = [key for key, pool in pools.items() if pool.autoscale]
    for keys, why in (
        (without, "Kueue would place no job on pools without InfiniBand"),
        (scaled, "pools with autoscale would not grow for pending jobs"),
    ):
        if keys:
            what = f"is true, but {why}: {', '.join(keys)}"
            yield Problem(_TOPOLOGY, what, "false, or other pools", set_command(_TOPOLOGY, False))


class Kueue(Installed[KueueSettings]):
    """The release, and the teams that use its queues."""

    def create(self, context: InstallContext, settings: KueueSettings) -> None:
        before = [each for other in context.installed.values() for each in other.followed]
        own = values(context.settings.operators.warm_up_minutes, monitored=MONITORING in context.installed)
        installed = release(NAME, context, parent=self, values=own, user_values=settings.values, depends_on=before)
        self.followed = [installed]
        if context.settings.teams or context.settings.slack_gpus:
            Teams("teams", context.settings, context.scheduler, installed, settings.topology, opts=self.child())


def values(warm_up_minutes: int = Operators().warm_up_minutes, *, monitored: bool = False) -> Values:
    """Returns values of the chart. They set the whole configuration, because the defaults change between versions.

    `monitored` adds a ServiceMonitor, which requires the CRD of ServiceMonitors.
    """
    text = yaml.safe_dump(configuration(warm_up_minutes), sort_keys=False)
    return {
        "controllerManager": {
            **ON_SYSTEM_POOL,
            "manager": {"priorityClassName": SYSTEM_PRIORITY, "resources": {"limits": {"memory": MEMORY}}},
        },
        "managerConfig": {"controllerManagerConfigYaml": text},
        **({"enablePrometheus": True} if monitored else {}),
    }


def configuration(warm_up_minutes: int) -> Values:
    """Returns the configuration of Kueue 0.19 (its apis/config/v1beta2).

    Kueue waits for missing CRDs of job kinds, which may be installed later. In teams' namespaces, a job without a queue
    never starts. In other namespaces, Kueue ignores all jobs. If the pods of an admitted job are not ready in time, the
    job returns to its queue, and waits longer each time.
    """
    # Kueue reconciles as many AppWrappers as Jobs in parallel, so that none waits for the Workloads of the others.
    jobs = {"Job.batch": 5, "AppWrapper.workload.codeflare.dev": 5}
    timeout = warm_up_minutes + 10  # otherwise Kueue would evict jobs that AppWrapper still waits for
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
            # Disabled (default: `timeout`), because AppWrapper restarts its own jobs. If Kueue evicts a job during its
            # restart, Kueue may never release the quota (kubernetes-sigs/kueue#14811).
            "recoveryTimeout": "0s",
            "blockAdmission": False,
            "requeuingStrategy": requeuing,
        },
        # Both strategies may preempt in an endless loop (kubernetes-sigs/kueue#14543): see the alert PreemptionLoop.
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
    }


def requeue_limit(timeout_minutes: int) -> int:
    """Returns how often Kueue requeues a job with unready pods before it deactivates the job, after at least a day.

    Each attempt takes the timeout and a pause, which doubles from one minute to `PAUSE_MINUTES`. Three more attempts
    make up for the short first pauses. Kueue resets the count only when it deactivates the job (0.19.2,
    pkg/controller/core/workload_controller.go).
    """
    return -(-DAY_MINUTES // (timeout_minutes + PAUSE_MINUTES)) + 3


class _Kueue(Operator[KueueSettings]):
    name = NAME
    title = "Kueue"
    summary = "Queues of teams' jobs, and their quotas."
    namespace = MLBATCH_NAMESPACE
    level = "baseline"
    settings = KueueSettings
    component = Kueue
    follows = (
        MONITORING,
        *("appwrapper", "kuberay", "training-operator"),  # their jobs are in teams' namespaces, which are deleted first
    )

    def provides(self, settings: KueueSettings) -> Mapping[Capability, str]:
        return {"queues": NAME}

    def problems(self, installation: Installation) -> Iterator[Problem]:
        stack = installation.stack
        asked = [key for key, given in (("teams", stack.teams), ("slackGpus", stack.slack_gpus)) if given]
        if asked and not stack.operators.of(self).enabled:
            path = ("operators", NAME, "enabled")
            what = f"is false, but {' and '.join(asked)} {'need' if asked[0] == 'teams' else 'needs'} {self.title}"
            yield Problem(path, what, f"true, or a stack without {' and '.join(asked)}", set_command(path, True))
        if stack.operators.of(self).topology:
            yield from topology_problems(installation)


OPERATOR = _Kueue()
