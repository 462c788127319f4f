"""A batch of a team on another stack's platform: as whom each object is made, what is kept, and what stays secret."""

from __future__ import annotations

import json
import shlex
from typing import Any
from unittest import mock

import pytest
from google.protobuf import json_format

from tests.support import team_stacks
from tests.support.mocks import Recorder

NAME = "batch-inference"
GRANITE = "ibm-granite/granite-3.2-8b-instruct"
READERS = f"mine-{NAME}-results"
GATED = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.fixture(scope="module")
def platform() -> Recorder:
    teams = {"blue": {"gpus": 8, "users": ["alice"]}}
    return team_stacks.platform(("appwrapper",), teams, {"sharedClass": "azurefile-csi"})


def guest(platform: Recorder, **options: Any) -> Recorder:
    return team_stacks.guest(platform, NAME, {"team": "blue", **options})


def made(found: Recorder) -> dict[str, Any]:
    """What is Kubernetes', by kind."""
    return {each.type.split(":")[-1]: each for each in team_stacks.in_team(found) if each.name != READERS}


def test_all_of_it_is_the_users(platform: Recorder) -> None:
    found = made(guest(platform, appWrapper=False, model=GATED, huggingFaceToken="hf_abc"))
    assert set(found) == {"ConfigMap", "Job", "PersistentVolumeClaimPatch", "Secret"}
    assert {each.provider.split()[-1] for each in found.values()} == {NAME}
    assert {each.inputs["metadata"]["namespace"] for each in found.values()} == {"blue"}


def test_names_begin_with_the_stacks_but_that_of_the_model_which_the_team_shares(platform: Recorder) -> None:
    found = made(guest(platform))
    names = {kind: each.inputs["metadata"]["name"] for kind, each in found.items()}
    assert names == {
        "AppWrapper": f"mine-{NAME}",
        "ConfigMap": f"mine-{NAME}",
        "PersistentVolumeClaimPatch": "model-ibm-granite-granite-3.2-8b-instruct-azurefile-csi",
    }


def test_the_model_and_the_results_stay_when_the_stack_goes(platform: Recorder) -> None:
    claim = made(guest(platform))["PersistentVolumeClaimPatch"]
    assert claim.request.retainOnDelete
    assert claim.inputs["spec"]["resources"]["requests"]["storage"] == "100Gi"
    larger = made(guest(platform, model="Qwen/Qwen2.5-72B-Instruct", gpus=4))["PersistentVolumeClaimPatch"]
    assert larger.inputs["spec"]["resources"]["requests"]["storage"] == "204Gi"


def test_the_token_is_a_secret_and_nothing_else_has_it(platform: Recorder) -> None:
    found = guest(platform, model=GATED, huggingFaceToken="hf_abc")
    for each in found.registered:
        shown = str(json_format.MessageToDict(each.request.object))
        assert ("hf_abc" in shown) == (each.type == "kubernetes:core/v1:Secret"), each.type
    secret = json_format.MessageToDict(made(found)["Secret"].request.object)["stringData"]
    assert "4dabf18193072939515e22adb298388d" in str(secret), "the mark of a secret"


@pytest.mark.parametrize(("model", "warned"), [("nobody/knows-it", 1), (GRANITE, 0)])
def test_it_is_said_of_a_model_that_nobody_knows(platform: Recorder, model: str, warned: int) -> None:
    with mock.patch("pulumi.log.warn") as warn:
        guest(platform, model=model)
    told = [call.args[0] for call in warn.call_args_list]
    assert len([text for text in told if f"nothing is known of {model}" in text]) == warned


def test_the_output_has_the_line_that_shows_the_results(platform: Recorder) -> None:
    found = guest(platform)
    (shown,) = found.shown["workloadDetails"].values()
    assert shown["command"] == f"kubectl logs -n blue job/mine-{NAME} -c load-generator"
    words = shlex.split(shown["results"])
    assert [words[at + 1] for at, word in enumerate(words) if word == "kubectl"] == ["get", "apply", "wait", "exec"]
    assert [words[at + 1] for at, word in enumerate(words) if word == "-n"] == ["blue"] * 4
    assert words[-4:-1] == [f"job/{READERS}", "--", "cat"]
    assert words[-1].startswith(f"/cache/results/mine-{NAME}/1-")
    (readers,) = (each for each in team_stacks.in_team(found) if each.name == READERS)
    job = json.loads(readers.inputs["data"]["job"])
    (volume,) = job["spec"]["template"]["spec"]["volumes"]
    assert volume["persistentVolumeClaim"] == {
        "claimName": made(found)["PersistentVolumeClaimPatch"].inputs["metadata"]["name"]
    }
    assert readers.inputs["metadata"] == {"name": READERS, "namespace": "blue"}
