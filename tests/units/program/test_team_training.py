"""A training of a team on another stack's platform: as whom each object is made, and under which name."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from google.protobuf import json_format

from tests.support import team_stacks
from tests.support.mocks import Recorder

NAME = "pytorch-pretraining"
OPTIONS = {"team": "blue", "numNodes": 2, "appWrapper": False, "dataContainer": "tokens", "checkpointContainer": "out"}


@pytest.fixture(scope="module")
def platform() -> Recorder:
    teams = {"blue": {"gpus": 16, "users": ["alice", "carol"], "pinsMemory": True}, "red": {"gpus": 0}}
    storage = {"containers": {"tokens": {"upload": True}, "out": {"permissions": "racwdlmp", "profile": "checkpoints"}}}
    return team_stacks.platform(("trainingOperator",), teams, storage)


def guest(platform: Recorder, **more: Any) -> Recorder:
    return team_stacks.guest(platform, NAME, {**OPTIONS, **more})


def kubeconfig(recorder: Recorder, provider: str) -> dict[str, Any]:
    (found,) = [
        each for each in recorder.registered if (each.type, each.name) == ("pulumi:providers:kubernetes", provider)
    ]
    text = json_format.MessageToDict(found.request.object)["kubeconfig"]["value"]
    read: dict[str, Any] = yaml.safe_load(text)
    return read


def test_one_provider_is_whoever_deploys_and_the_other_the_teams_user(platform: Recorder) -> None:
    found = guest(platform)
    assert [user["user"].get("as") for user in kubeconfig(found, "kubernetes")["users"]] == [None]
    assert [user["user"]["as"] for user in kubeconfig(found, NAME)["users"]] == ["alice"], "the first of the team's"
    assert [user["user"]["as"] for user in kubeconfig(guest(platform, user="carol"), NAME)["users"]] == ["carol"]


def test_the_job_is_the_users_and_what_is_the_clusters_is_the_deployers(platform: Recorder) -> None:
    found = guest(platform)
    made = team_stacks.in_team(found)
    assert team_stacks.kinds(found, "kubernetes", NAME) == {
        "kubernetes": ["PersistentVolume", "PersistentVolumeClaim", "Secret"],
        NAME: ["ConfigMap", "Job", "PyTorchJob"],
    }
    assert {each.inputs["metadata"].get("namespace", "blue") for each in made} == {"blue"}


def test_the_data_are_checked_before_the_job_is_created_and_without_data_nothing_is(platform: Recorder) -> None:
    found = guest(platform, vocabulary=50257)
    check = found.one(":batch/v1:Job")
    assert f"{check.type} {check.name}" in found.one(":PyTorchJob").dependencies
    (container,) = check.inputs["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["python", "-m", "pretraining.token_files", "/data", "50257"]
    kinds = {each.type for each in guest(platform, dataContainer="").registered}
    assert "kubernetes:batch/v1:Job" not in kinds


def test_the_sas_by_which_data_are_uploaded_is_in_no_secret_that_the_team_can_read(platform: Recorder) -> None:
    secrets = [each for each in team_stacks.in_team(guest(platform)) if each.type.endswith(":Secret")]
    names = sorted(each.inputs["metadata"]["name"].rpartition("-")[0] for each in secrets)
    assert names == [f"mine-{NAME}-{container}-sas" for container in ("out", "tokens")]


def test_names_begin_with_the_stacks_since_others_have_theirs_there(platform: Recorder) -> None:
    made = team_stacks.in_team(guest(platform))
    names = {each.inputs["metadata"]["name"].removeprefix("blue-") for each in made}
    assert all(name.startswith(f"mine-{NAME}") for name in names), names


def test_pods_mount_what_they_read_and_write(platform: Recorder) -> None:
    job = guest(platform).one(":PyTorchJob").inputs["spec"]["pytorchReplicaSpecs"]
    for kind in ("Master", "Worker"):
        pod = job[kind]["template"]["spec"]
        mounts = {each["mountPath"]: each for each in pod["containers"][0]["volumeMounts"]}
        assert mounts["/data"].get("readOnly")
        assert "readOnly" not in mounts["/checkpoints"]


def test_a_team_that_pins_memory_has_a_policy_in_place_of_the_level(platform: Recorder) -> None:
    labels = platform.one(":core/v1:Namespace", "namespace-blue").inputs["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
    assert labels["ai-on-aks/pins-memory"] == "true"
    after = " ".join(platform.one(":core/v1:Namespace", "namespace-blue").dependencies)
    assert "team-pod-security-binding" in after, "the level goes once the policy acts"
    other = platform.one(":core/v1:Namespace", "namespace-red").inputs["metadata"]["labels"]
    assert other["pod-security.kubernetes.io/enforce"] == "baseline"
    assert "ai-on-aks/pins-memory" not in other
