from __future__ import annotations

import pytest
import yaml

from diagnosis.cluster import CONFIG_MAP
from k8s.objects import Object
from operators.appwrapper import configuration
from tests.unit.diagnosis import objects as make

CONFIG_METADATA = {"name": "appwrapper-operator-config", "namespace": "appwrapper-system"}


def condition(kind: str, reason: str, message: str) -> Object:
    fields = {"type": kind, "status": "True", "reason": reason, "message": message}
    return {**fields, "lastTransitionTime": "2026-11-22T10:42:00Z"}


@pytest.mark.parametrize("reason", ["CreateFailed", "FoundFailedPods"])
def test_shows_why_the_last_try_ended_and_the_configured_period(reason: str) -> None:
    kind, wrapper = make.app_wrapper(phase="Resuming")
    conditions = [condition("ResourcesDeployed", "Resuming", "x"), condition("Unhealthy", reason, "denied")]
    parts = [{"podSets": [{"path": "template.spec.template"}]}]
    wrapper["status"] |= {"conditions": conditions, "resettingCount": 1, "componentStatus": parts}
    configured = {"config.yaml": yaml.safe_dump(configuration(30, "coscheduler"))}
    objects = (kind, wrapper), (CONFIG_MAP, {"metadata": CONFIG_METADATA, "data": configured})
    assert make.shown(make.diagnosed(*objects)) == [
        f"waits: its last try ended with {reason}: denied; AppWrapper retries until 10:43 UTC "
        "(admissionGracePeriodDuration), then restarts it (1 of 3 retries used)",
        "do: kubectl describe appwrapper -n ai train",
    ]
