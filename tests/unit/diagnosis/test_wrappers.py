"""AppWrappers: what they wait for and until when, their retries, and why they failed."""

from __future__ import annotations

import pytest
import yaml

from diagnosis.cluster import CONFIG_MAP, Kind
from diagnosis.report import report
from k8s.objects import Object
from operators.appwrapper import configuration
from tests.unit.diagnosis import objects as make

AT = "2026-11-22T10:42:00Z"
DEPLOYED: Object = {"ResourcesDeployed": ("True", "Resuming", "Suspend is false")}
LOOK = "do: kubectl describe appwrapper -n ai train"


def configured() -> tuple[Kind, Object]:
    """Returns the configuration that the program installs, with half an hour to warm up."""
    metadata = {"name": "appwrapper-operator-config", "namespace": "appwrapper-system"}
    return CONFIG_MAP, {"metadata": metadata, "data": {"config.yaml": yaml.safe_dump(configuration(30, "coscheduler"))}}


def wrapper(phase: str, conditions: Object, *, spent: int = 0, **annotations: str) -> tuple[Kind, Object]:
    """Returns a wrapper with one pod. Conditions are (status, reason, message), and have all changed at `AT`."""
    kind, found = make.app_wrapper(phase=phase)
    names = ("status", "reason", "message")
    written = [
        {"type": each, "lastTransitionTime": AT, **dict(zip(names, conditions[each], strict=True))}
        for each in conditions
    ]
    prefix = "workload.codeflare.dev.appwrapper/"
    found["metadata"]["annotations"] = {f"{prefix}{key}": value for key, value in annotations.items()}
    parts = [{"podSets": [{"path": "template.spec.template"}]}]
    found["status"] |= {"conditions": written, "resettingCount": spent, "componentStatus": parts}
    return kind, found


def shown(*objects: tuple[Kind, Object]) -> list[str]:
    return make.shown(report(make.cluster(*objects, configured()), "ai", "train"))


@pytest.mark.parametrize("phase", ["Suspending", "Terminating"])
def test_deletes_the_resources_finally_by_force(phase: str) -> None:
    going = wrapper(
        phase, {"DeletingResources": ("True", "DeletionInitiated", "")}, forcefulDeletionGracePeriodDuration="2m"
    )
    assert shown(going)[0] == "waits: AppWrapper is deleting its resources, by force from 10:44 UTC"


@pytest.mark.parametrize("reason", ["CreateFailed", "FoundFailedPods"])
def test_shows_why_the_last_try_ended(reason: str) -> None:
    again = wrapper("Resuming", DEPLOYED | {"Unhealthy": ("True", reason, "denied")}, spent=1)
    assert shown(again) == [
        f"waits: its last try ended with {reason}: denied; AppWrapper retries until 10:43 UTC "
        "(admissionGracePeriodDuration), then restarts it (1 of 3 retries used)",
        LOOK,
    ]
