"""A fine-tuning of a team on another stack's platform: as whom each object is made, and what is secret."""

from __future__ import annotations

import pytest
from google.protobuf import json_format

from tests.support import team_stacks
from tests.support.mocks import Recorder

NAME = "ray-finetuning"
TOKEN = "hf_not-a-real-one"
OPTIONS = {
    "team": "blue",
    "model": "meta-llama/Llama-3.1-8B",
    "huggingFaceToken": TOKEN,
    "numNodes": 2,
    "dataContainer": "lines",
    "checkpointContainer": "out",
}


@pytest.fixture(scope="module")
def guest() -> Recorder:
    storage = {"containers": {"lines": {}, "out": {"permissions": "racwdlmp", "profile": "checkpoints"}}}
    platform = team_stacks.platform(("kuberay",), {"blue": {"gpus": 16, "users": ["alice"]}}, storage)
    return team_stacks.guest(platform, NAME, OPTIONS)


def test_what_queues_is_the_users_and_what_is_the_clusters_is_the_deployers(guest: Recorder) -> None:
    made = team_stacks.in_team(guest)
    assert team_stacks.kinds(guest, "kubernetes", NAME) == {
        "kubernetes": ["PersistentVolume", "PersistentVolumeClaim", "Secret"],
        NAME: ["ConfigMap", "Job", "PodGroup", "RayJob", "Secret"],
    }
    names = {each.inputs["metadata"]["name"].removeprefix("blue-") for each in made}
    assert all(name.startswith(f"mine-{NAME}") for name in names), names


def test_the_gang_is_there_before_the_job(guest: Recorder) -> None:
    job, group = guest.one(":RayJob"), guest.one(":PodGroup")
    assert any("PodGroup" in each for each in job.dependencies)
    assert group.inputs["spec"] == {"minMember": 3}
    head = job.inputs["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]
    assert head["metadata"]["labels"] == {"scheduling.x-k8s.io/pod-group": group.inputs["metadata"]["name"]}


def test_the_data_are_checked_before_the_job_is_created(guest: Recorder) -> None:
    check = guest.one(":batch/v1:Job")
    assert f"{check.type} {check.name}" in guest.one(":RayJob").dependencies
    assert check.inputs["metadata"]["name"] == f"mine-{NAME}-data"
    assert "pulumi.com/skipAwait" not in check.inputs["metadata"]["annotations"]
    assert check.inputs["spec"]["template"]["metadata"]["annotations"].keys() == {"sas.ai-on-aks/lines"}


def test_the_token_is_a_secret_of_pulumi_and_of_kubernetes_alone(guest: Recorder) -> None:
    (secret,) = (each for each in guest.registered if each.name == f"{NAME}-token")
    told = json_format.MessageToJson(secret.request.object)
    assert TOKEN in told
    assert "4dabf18193072939515e22adb298388d" in told, "Pulumi's mark of a secret"
    others = [json_format.MessageToJson(each.request.object) for each in guest.registered if each is not secret]
    assert not [text for text in others if TOKEN in text]


def test_a_new_sas_makes_another_job_whose_pods_see_it(guest: Recorder) -> None:
    spec = guest.one(":RayJob").inputs["spec"]["rayClusterSpec"]
    (group,) = spec["workerGroupSpecs"]
    digests = group["template"]["metadata"]["annotations"]
    assert {"sas.ai-on-aks/lines", "sas.ai-on-aks/out"} <= set(digests)
    assert "sas.ai-on-aks/out" in spec["headGroupSpec"]["template"]["metadata"]["annotations"]


def test_the_dashboard_is_reached_by_a_service_whose_name_stays(guest: Recorder) -> None:
    found = guest.shown["workloadDetails"][NAME]
    assert found["command"] == f"kubectl logs -n blue job/mine-{NAME}"
    assert found["dashboard"] == f"kubectl port-forward -n blue svc/mine-{NAME}-head-svc 8265:8265"
