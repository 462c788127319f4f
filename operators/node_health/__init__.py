"""Node health: the rights of checks, and the CronJob that handles nodes with failed checks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pulumi
import pulumi_kubernetes as kubernetes
from pydantic import Field

from components.operators import InstallContext, Installed, Operator
from config.data.blobfuse import ACCOUNT
from config.data.scheduling import (
    AUTOPILOT_LABEL,
    BAD_NODE,
    GPU_LABEL,
    HEALTH_ACCOUNT,
    HEALTH_ROLE,
    HEALTH_TAINT,
    ON_SYSTEM_POOL,
)
from config.rules.teams import SLACK
from config.schema.base import PLAIN_DIGITS
from config.schema.models import Settings
from config.schema.operators import NODE_HEALTH, NODE_TOOLS_NAMESPACE, OperatorSettings
from k8s.templates import filled
from operators._lib.node_tools import CONFINED, UNPRIVILEGED
from operators._lib.rights import RBAC, admission_policy
from operators.kueue.queues import queue_name
from operators.node_problem_detector.conditions import condition_type, conditions

POLICY = "health-checks-own-node"
MAX_GRACE = 7 * 24 * 60


class NodeHealthSettings(OperatorSettings):
    """Settings of the taint `aznhc=failed`."""

    taint_effect: Literal["NoSchedule", "NoExecute"] = "NoSchedule"
    """The effect on jobs on a node with a failed check (taint `aznhc=failed`). With `NoSchedule`, jobs keep running for
    `graceMinutes`. With `NoExecute`, AppWrapper may first move them; within about ten minutes, they are ended.
    """
    grace_minutes: Annotated[int, Field(ge=0, le=MAX_GRACE), PLAIN_DIGITS] = 60
    """Minutes until jobs on a bad node are ended: first the label tells AppWrapper to move them, then the taint becomes
    `NoExecute`.
    """

    @property
    def failure_effect(self) -> str | None:
        """The taint effect that a check's pod sets. The CronJob later changes it to `NoExecute`."""
        return "NoSchedule"


RULES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}]
OWN_RULES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "patch"]}]
SLACK_RULES = [
    {
        "apiGroups": ["kueue.x-k8s.io"],
        "resources": ["clusterqueues"],
        "resourceNames": [queue_name(SLACK)],
        "verbs": ["get", "patch"],
    }
]
MINUTES = 5


class NodeHealth(Installed[NodeHealthSettings]):
    """The policy for checks, their role, their accounts in teams' namespaces, and the CronJob."""

    def create(self, context: InstallContext, settings: NodeHealthSettings) -> None:
        after = [context.namespace]
        bound = admission_policy(POLICY, policy_spec(), parent=self, after=after)
        role = kubernetes.rbac.v1.ClusterRole(
            HEALTH_ROLE, metadata={"name": HEALTH_ROLE}, rules=RULES, opts=self.child(depends_on=[bound])
        )
        self.followed = [role]
        if teams := sorted(context.settings.teams):
            self._accounts(teams, role, list(context.installed.values()))
        self._cron_job(context, settings)

    def _accounts(self, teams: list[str], role: pulumi.Resource, kueue: list[Installed[Any]]) -> None:
        """Creates the service accounts of checks, which members of teams cannot create. `kueue` creates the
        namespaces.
        """
        for team in teams:
            kubernetes.core.v1.ServiceAccount(
                f"{team}-{HEALTH_ACCOUNT}",
                metadata={"name": HEALTH_ACCOUNT, "namespace": team},
                opts=self.child(depends_on=kueue),
            )
        kubernetes.rbac.v1.ClusterRoleBinding(
            "aksnhc-rolebinding-teams",
            metadata={"name": "aksnhc-rolebinding-teams"},
            role_ref={"apiGroup": RBAC, "kind": "ClusterRole", "name": HEALTH_ROLE},
            subjects=[{"kind": "ServiceAccount", "name": HEALTH_ACCOUNT, "namespace": team} for team in teams],
            opts=self.child(depends_on=[role]),
        )

    def _cron_job(self, context: InstallContext, settings: NodeHealthSettings) -> None:
        space, own = context.namespace.metadata["name"], self.child(depends_on=[context.namespace])
        account = kubernetes.core.v1.ServiceAccount(
            f"{NODE_HEALTH}-account", metadata={"name": NODE_HEALTH, "namespace": space}, opts=own
        )
        role = kubernetes.rbac.v1.ClusterRole(
            f"{NODE_HEALTH}-role",
            metadata={"name": NODE_HEALTH},
            rules=[*OWN_RULES, *(SLACK_RULES if context.settings.slack_gpus else [])],
            opts=own,
        )
        binding = kubernetes.rbac.v1.ClusterRoleBinding(
            f"{NODE_HEALTH}-binding",
            metadata={"name": NODE_HEALTH},
            role_ref={"apiGroup": RBAC, "kind": "ClusterRole", "name": role.metadata["name"]},
            subjects=[{"kind": "ServiceAccount", "name": NODE_HEALTH, "namespace": space}],
            opts=self.child(),
        )
        kubernetes.batch.v1.CronJob(
            NODE_HEALTH,
            metadata={"name": NODE_HEALTH, "namespace": space},
            spec=cron_job_spec(pod_spec(context.image(NODE_HEALTH), settings, slack=slack_variables(context.settings))),
            opts=self.child(depends_on=[context.registry, account, binding]),
        )


def policy_spec() -> dict[str, Any]:
    accounts = {"account": HEALTH_ACCOUNT, "blobAccount": ACCOUNT}
    return filled(Path(__file__).with_name("policy.yaml"), **accounts, taint=HEALTH_TAINT)


def cron_job_spec(pod: dict[str, Any]) -> dict[str, Any]:
    """Returns a spec that runs one round at a time. A failed round stays visible, and the next round repeats it."""
    template = {"metadata": {"labels": {"app.kubernetes.io/name": NODE_HEALTH}}, "spec": pod}
    return {
        "schedule": f"*/{MINUTES} * * * *",
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": MINUTES * 60,
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {
            "spec": {"backoffLimit": 0, "activeDeadlineSeconds": MINUTES * 60, "template": template},
        },
    }


def critical() -> list[str]:
    """Returns the condition types that keep jobs off a node. Nodes only have them with node-problem-detector."""
    return [condition_type(name) for name, each in conditions().items() if each.alert.severity == "critical"]


def slack_variables(settings: Settings) -> dict[str, str]:
    """Returns the pod's environment variables for the lending limit of the slack queue; empty without such a queue.

    Autoscaled pools are excluded, because the autoscaler can still add their missing nodes.
    """
    if not settings.slack_gpus:
        return {}
    fixed = {key: pool for key, pool in settings.gpu_pools().items() if pool.autoscale is None}
    return {
        "POOLS": ",".join(f"{key}={pool.count}x{pool.gpus}" for key, pool in fixed.items()),
        "SLACK_QUEUE": queue_name(SLACK),
        "WARM_UP_MINUTES": str(settings.operators.warm_up_minutes),
    }


def pod_spec(image: str, settings: NodeHealthSettings, slack: Mapping[str, str] | None = None) -> dict[str, Any]:
    variables = {
        "BAD_CONDITIONS": ",".join(critical()),
        "BAD_LABELS": f"{AUTOPILOT_LABEL}=EVICT",
        "GRACE_MINUTES": str(settings.grace_minutes),
        "LABEL": BAD_NODE,
        "NODES": f"{GPU_LABEL}=true",
        "TAINT_EFFECT": settings.taint_effect,
        **(slack or {}),
    }
    return {
        "restartPolicy": "Never",
        **ON_SYSTEM_POOL,
        "serviceAccountName": NODE_HEALTH,
        "securityContext": UNPRIVILEGED,
        "containers": [
            {
                "name": NODE_HEALTH,
                "image": image,
                "command": ["/opt/node-health/node_health.py"],
                "env": [{"name": name, "value": value} for name, value in variables.items()],
                "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
                "securityContext": CONFINED,
            }
        ],
    }


class _NodeHealth(Operator[NodeHealthSettings]):
    name = NODE_HEALTH
    title = "node health"
    summary = "Lets health checks taint nodes that fail."
    has_chart = False
    namespace = NODE_TOOLS_NAMESPACE
    settings = NodeHealthSettings
    component = NodeHealth
    follows = ("kueue",)
    is_for_gpu_pools = True


OPERATOR = _NodeHealth()
