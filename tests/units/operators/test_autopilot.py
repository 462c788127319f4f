"""Autopilot: what its chart is given, what its pods get beside, and settings that would end it."""

from __future__ import annotations

from typing import Any

import pytest

from config.problems.errors import SettingsError
from operators import autopilot
from tests.support.mocks import program
from tests.support.settings import H100, load

ON: dict[str, Any] = {"enabled": True}


def env(values: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in values["env"]}


def refusals(**autopilot: Any) -> str:
    with pytest.raises(SettingsError) as told:
        load({"vmSku": H100, "nodeCount": 2, "workloads": "nccl-allreduce", "operators": {"autopilot": ON | autopilot}})
    return str(told.value)


def test_its_checks_are_its_own_and_a_claim_is_made_where_it_is_asked_for() -> None:
    assert env(autopilot.values())["PERIODIC_CHECKS"] == "pciebw,remapped,gpupower,ping"
    tested = env(autopilot.values("shared"))
    assert tested["PERIODIC_CHECKS"] == "pciebw,remapped,gpupower,pvc,ping"
    assert tested["PVC_TEST_STORAGE_CLASS"] == "shared"


def test_what_takes_all_gpus_past_the_queue_is_as_good_as_off_and_never_0_which_ends_it() -> None:
    assert autopilot.values()["invasive"] >= 24 * 365


def test_its_pods_get_onto_nodes_with_any_taint_and_to_their_gpus() -> None:
    made = program({"vmSku": H100, "nodeCount": 2, "operators": {"autopilot": ON}})
    patch = made.one(":DaemonSetPatch", "autopilot")
    assert patch.inputs["spec"]["template"]["spec"] == {
        "tolerations": [{"operator": "Exists"}],
        "runtimeClassName": "nvidia",
    }
    assert patch.inputs["metadata"]["namespace"] == "autopilot"
    release = made.one(":Release", "autopilot")
    assert release.inputs["skipAwait"] is True, "its pods run only once they are patched"
    assert release.inputs["values"]["image"] == {"tag": "v2.1.3"}
    assert release.inputs["values"]["annotations"], "without any, ping fails"


@pytest.mark.parametrize("key", ["repeat", "invasive"])
@pytest.mark.parametrize("hours", [0, -1])
def test_an_interval_that_would_end_it_is_refused(key: str, hours: int) -> None:
    text = refusals(values={key: hours})
    assert f"operators.autopilot.values.{key}" in text
    assert "whole hours, 1 or more" in text
    assert f"change operators.autopilot.values.{key} in the stack file" in text


def test_intervals_with_units_are_of_later_images() -> None:
    assert "a whole number" in refusals(values={"repeat": "1h"})


def test_whole_hours_are_taken() -> None:
    load({"vmSku": H100, "nodeCount": 2, "workloads": "", "operators": {"autopilot": {**ON, "values": {"repeat": 2}}}})


def test_shared_files_are_tested_only_where_there_are_some() -> None:
    text = refusals(testSharedFiles=True)
    assert "operators.autopilot.testSharedFiles" in text
    assert "pulumi config set -s dev --path operators.autopilot.testSharedFiles false" in text


def test_the_claim_is_of_the_stacks_class_of_shared_files() -> None:
    operators = {"autopilot": {**ON, "testSharedFiles": True}}
    made = program({"vmSku": H100, "nodeCount": 2, "operators": operators, "storage": {"sharedClass": "team-files"}})
    given = env(made.one(":Release", "autopilot").inputs["values"])
    assert given["PVC_TEST_STORAGE_CLASS"] == "team-files"


def test_without_the_gpu_operator_it_has_no_gpus() -> None:
    off = {"gpuOperator": {"enabled": False}, "autopilot": ON}
    with pytest.raises(SettingsError, match="autopilot"):
        load({"vmSku": H100, "nodeCount": 2, "workloads": "", "operators": off})
