"""AppWrapper: starts the objects of a team's job together, and restarts them if one fails or has a bad node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from components.operators import InstallContext, Installed, Operator
from config.data.scheduling import (
    AUTOPILOT_LABEL,
    BAD_NODE,
    GPU_RESOURCE,
    LOCAL_QUEUE,
    WRAPPER_CONFIG,
    WRAPPER_NAMESPACE,
)
from config.schema.operators import Capability, QueuedOperatorSettings
from operators._lib.manifests import Changes, install

NAME = "appwrapper"
_S, _MINUTE, _HOUR = 10**9, 60 * 10**9, 3600 * 10**9
"""Go durations in nanoseconds: the configuration does not accept units."""

RESOURCES = {"requests": {"memory": "250Mi"}, "limits": {"memory": "1000Mi"}}
"""MLBatch's values (its setup.k8s/appwrapper/base/manager_resources_patch.yaml). The operator caches all pods of the
cluster (v1.2.1, cmd/main.go: a cache without selectors), so the 128Mi of the release are too little.
"""


class AppWrapper(Installed[QueuedOperatorSettings]):
    """The release, with its configuration."""

    def create(self, context: InstallContext, settings: QueuedOperatorSettings) -> None:
        own = configuration(context.settings.operators.warm_up_minutes, context.scheduler)
        text = yaml.safe_dump(own, sort_keys=False)
        changes = Changes({WRAPPER_CONFIG: {"config.yaml": text}}, resources=RESOURCES)
        self.followed = install(NAME, context, changes, parent=self)


def configuration(warm_up_minutes: int, scheduler: str | None) -> dict[str, Any]:
    """Returns the configuration of AppWrapper 1.2 (its pkg/config/config.go), mostly with upstream's numbers.

    Annotations of jobs can override `faultTolerance`. Only annotations can list the exit codes to retry. Members of
    teams may wrap objects that they may not create, because Kueue queues all AppWrappers.

    Pods without a scheduler get the scheduler for GPU nodes. AppWrappers without a queue get the queue name of teams,
    as in MLBatch (its setup.k8s/appwrapper/coscheduling/config_patch.yaml). Kueue ignores queue names outside of teams'
    namespaces (0.19.2, feature gate ManagedJobsNamespaceSelectorAlwaysRespected, locked to true).
    """
    return {
        "controllerManager": {
            "health": {"bindAddress": ":8081"},
            "metrics": {"bindAddress": ":8443"},
            "leaderElection": True,
        },
        "appwrapper": {
            "defaultQueueName": LOCAL_QUEUE,
            "userRBACAdmissionCheck": False,
            **({"schedulerName": scheduler} if scheduler else {}),
            "autopilot": {
                "injectAntiAffinities": True,
                "monitorNodes": True,
                "resourceTaints": {GPU_RESOURCE: bad_nodes()},
                "preferNoScheduleWeight": 50,
            },
            "faultTolerance": {
                "admissionGracePeriod": _MINUTE,
                "warmupGracePeriod": warm_up_minutes * _MINUTE,
                "failureGracePeriod": _MINUTE,
                "resetPause": 90 * _S,
                "retryLimit": 3,
                "deletionGracePeriod": 10 * _MINUTE,
                "gracePeriodCeiling": 24 * _HOUR,
                "successTTLCeiling": 7 * 24 * _HOUR,
            },
        },
    }


def bad_nodes() -> list[dict[str, str]]:
    """Returns node labels, each with the effect of a taint: new jobs avoid such a node, or all jobs leave it."""
    found = {"WARN": "PreferNoSchedule", "TESTING": "NoSchedule", "EVICT": "NoExecute"}
    key, _, value = BAD_NODE.partition("=")
    return [
        *({"key": AUTOPILOT_LABEL, "value": each, "effect": effect} for each, effect in found.items()),
        {"key": key, "value": value, "effect": "NoExecute"},
    ]


class _AppWrapper(Operator[QueuedOperatorSettings]):
    name = NAME
    title = "AppWrapper"
    summary = "Starts all pods of a team's job together, and restarts them on other nodes after failures."
    has_chart = False
    namespace = WRAPPER_NAMESPACE
    level = "baseline"
    settings = QueuedOperatorSettings
    component = AppWrapper
    needs: Mapping[Capability, str] = {"queues": "starts the jobs that Kueue admits"}


OPERATOR = _AppWrapper()
