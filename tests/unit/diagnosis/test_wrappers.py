"""The life of an AppWrapper: what it waits for and until when, how many retries are spent, why it has failed."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from diagnosis.cluster import CONFIG_MAP, Kind
from diagnosis.report import Report, report
from k8s.objects import Object
from operators.appwrapper import configuration
from tests.unit.diagnosis import objects as make

AT = "2026-11-22T10:42:00Z"
DEPLOYED: Object = {"ResourcesDeployed": ("True", "Resuming", "Suspend is false")}
LOOK = "do: kubectl describe appwrapper -n ai train"


def configured() -> tuple[Kind, Object]:
    """As the program installs it, with half an hour to warm up."""
    metadata = {"name": "appwrapper-operator-config", "namespace": "appwrapper-system"}
    return CONFIG_MAP, {"metadata": metadata, "data": {"config.yaml": yaml.safe_dump(configuration(30, "coscheduler"))}}


def wrapper(phase: str, conditions: Object, *, spent: int = 0, **annotations: str) -> tuple[Kind, Object]:
    """Of one pod. Conditions are given as (status, reason, message), and have all changed at the same time."""
    kind, found = make.app_wrapper(phase=phase)
    names = ("status", "reason", "message")
    told = [
        {"type": each, "lastTransitionTime": AT, **dict(zip(names, conditions[each], strict=True))}
        for each in conditions
    ]
    prefix = "workload.codeflare.dev.appwrapper/"
    found["metadata"]["annotations"] = {f"{prefix}{key}": value for key, value in annotations.items()}
    parts = [{"podSets": [{"path": "template.spec.template"}]}]
    found["status"] |= {"conditions": told, "resettingCount": spent, "componentStatus": parts}
    return kind, found


def pod(**status: Any) -> tuple[Kind, Object]:
    """Of the job that it wraps."""
    return make.pod("train-0", owner="gone", on="a", labels={"workload.codeflare.dev/appwrapper": "train"}, **status)


def diagnosed(*objects: tuple[Kind, Object]) -> Report:
    return report(make.cluster(*objects), "ai", "train")


def told(*objects: tuple[Kind, Object]) -> list[str]:
    return make.told(diagnosed(*objects, configured()))


@pytest.mark.parametrize("phase", ["Suspending", "Terminating"])
def test_what_is_taken_away_for_good(phase: str) -> None:
    going = wrapper(
        phase, {"DeletingResources": ("True", "DeletionInitiated", "")}, forcefulDeletionGracePeriodDuration="2m"
    )
    assert told(going)[0] == "waits: AppWrapper takes all of it away, by force what has not ended by 10:44 UTC"


@pytest.mark.parametrize("reason", ["CreateFailed", "FoundFailedPods"])
def test_after_a_reset_it_is_reported_why_the_last_try_ended(reason: str) -> None:
    again = wrapper("Resuming", DEPLOYED | {"Unhealthy": ("True", reason, "denied")}, spent=1)
    assert told(again) == [
        f"waits: its last try ended with {reason}: denied; AppWrapper tries again until 10:43 UTC "
        "(admissionGracePeriodDuration), then it starts all of it anew (1 of 3 retries spent)",
        LOOK,
    ]
