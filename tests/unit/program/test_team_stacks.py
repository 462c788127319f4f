"""Golden files have these workloads without containers, tokens or plain Jobs."""

from __future__ import annotations

import functools
import json
import shlex
from typing import Any
from unittest import mock

import pytest
import yaml
from google.protobuf import json_format

from config.rules.teams import quota_table
from tests.support.case_files import case_table
from tests.support.mocked_azure import Azure
from tests.support.mocks import Recorder, Registered, program
from tests.support.settings import load
from tests.support.sizes import H100

TRAINING, TUNING, BATCH = "pytorch-pretraining", "ray-finetuning", "batch-inference"
LLAMA, GRANITE = "meta-llama/Llama-3.1-8B", "ibm-granite/granite-3.2-8b-instruct"
TOKEN = "hf_not-a-real-one"
IS_SECRET = "4dabf18193072939515e22adb298388d"
OPTIONS: dict[str, dict[str, Any]] = {
    TRAINING: {"numNodes": 2, "appWrapper": False, "dataContainer": "data", "checkpointContainer": "out"},
    TUNING: {
        "model": LLAMA,
        "huggingFaceToken": TOKEN,
        "numNodes": 2,
        "dataContainer": "data",
        "checkpointContainer": "out",
    },
    BATCH: {"appWrapper": False, "model": f"{LLAMA}-Instruct", "huggingFaceToken": TOKEN},
}


@functools.cache
def platform() -> Recorder:
    containers = {"data": {"upload": True}, "out": {"permissions": "racwdlmp", "profile": "checkpoints"}}
    queued = ("kueue", "trainingOperator", "kuberay", "appwrapper")
    keys = {
        "vmSku": H100,
        "cluster": {"localAccounts": True},
        "charts": {"source": "simulator/charts"},
        "operators": {"scheduler": "scheduler-plugins-scheduler", **{each: {"enabled": True} for each in queued}},
        "teams": {"blue": {"gpus": 16, "users": ["alice", "carol"], "pinsMemory": True}, "red": {"gpus": 0}},
        "storage": {"sharedClass": "azurefile-csi", "containers": containers},
    }
    return program(keys, stack="teams")


def stack(workload: str, **options: Any) -> Recorder:
    keys = {
        "platformStack": "teams",
        "workloads": workload,
        "workloadOptions": {workload: {"team": "blue", **options}},
    }
    secret = ("workloadOptions",) if "huggingFaceToken" in options else ()
    return program(keys, Azure(stacks={"teams": platform()}), stack="mine", secret=secret)


@functools.cache
def usual(workload: str) -> Recorder:
    return stack(workload, **OPTIONS[workload])


def in_team(recorder: Recorder) -> list[Registered]:
    """Omits the ServiceAccount that registers the stack."""
    return [each for each in recorder.registered if each.type.startswith("kubernetes:") and each.name != "consumer"]


def kinds(recorder: Recorder, provider: str) -> list[str]:
    made = [each for each in in_team(recorder) if each.provider == f"pulumi:providers:kubernetes {provider}"]
    return sorted({each.type.split(":")[-1] for each in made})


def names(recorder: Recorder) -> list[str]:
    found = [each.inputs["metadata"]["name"] for each in in_team(recorder)]
    return [name.removeprefix("blue-") for name in found if not name.startswith("model-")]


def users(recorder: Recorder, provider: str) -> list[str | None]:
    (found,) = [each for each in recorder.registered if each.type.endswith(":kubernetes") and each.name == provider]
    kubeconfig = json_format.MessageToDict(found.request.object)["kubeconfig"]["value"]
    return [user["user"].get("as") for user in yaml.safe_load(kubeconfig)["users"]]


def test_the_deployer_and_the_teams_user_have_separate_providers() -> None:
    assert users(usual(TRAINING), "kubernetes") == [None]
    assert users(usual(TRAINING), TRAINING) == ["alice"], "the first user of the team"
    assert users(stack(TRAINING, **OPTIONS[TRAINING], user="carol"), TRAINING) == ["carol"]


@case_table(__file__, "created")
def test_the_user_creates_the_job_and_the_deployer_the_volumes(
    workload: str, deployers: list[str], users: list[str]
) -> None:
    found = usual(workload)
    assert kinds(found, "kubernetes") == deployers
    assert kinds(found, workload) == users
    spaces = {each.inputs["metadata"].get("namespace", "blue") for each in in_team(found)}
    assert spaces == {"blue"}
    assert all(name.startswith(f"mine-{workload}") for name in names(found)), "other stacks use the same namespace"


@pytest.mark.parametrize(("workload", "job"), [(TRAINING, ":PyTorchJob"), (TUNING, ":RayJob")])
def test_checks_the_data_before_the_job(workload: str, job: str) -> None:
    check = usual(workload).one(":batch/v1:Job")
    assert f"{check.type} {check.name}" in usual(workload).one(job).dependencies
    assert check.inputs["metadata"]["name"] == f"mine-{workload}-data"
    assert "pulumi.com/skipAwait" not in check.inputs["metadata"]["annotations"]
    assert check.inputs["spec"]["template"]["metadata"]["annotations"].keys() == {"sas.ai-on-aks/data"}


def test_the_check_of_data_knows_the_vocabulary() -> None:
    check = stack(TRAINING, **OPTIONS[TRAINING], vocabulary=50257).one(":batch/v1:Job")
    (container,) = check.inputs["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["python", "-m", "pretraining.token_files", "/data", "50257"]
    assert stack(TRAINING, **{**OPTIONS[TRAINING], "dataContainer": ""}).names(":batch/v1:Job") == []


def test_the_teams_secrets_have_no_sas_for_uploads() -> None:
    secrets = [each for each in in_team(usual(TRAINING)) if each.type.endswith(":Secret")]
    found = sorted(each.inputs["metadata"]["name"].rpartition("-")[0] for each in secrets)
    assert found == [f"mine-{TRAINING}-{container}-sas" for container in ("data", "out")]


@pytest.mark.parametrize("workload", [TUNING, BATCH])
def test_the_token_is_only_in_one_secret(workload: str) -> None:
    requests = [(each.type, json_format.MessageToJson(each.request.object)) for each in usual(workload).registered]
    ((kind, request),) = [(kind, request) for kind, request in requests if TOKEN in request]
    assert kind == "kubernetes:core/v1:Secret"
    assert IS_SECRET in request


def test_pods_of_a_training_read_data_and_write_checkpoints() -> None:
    job = usual(TRAINING).one(":PyTorchJob").inputs["spec"]["pytorchReplicaSpecs"]
    for kind in ("Master", "Worker"):
        pod = job[kind]["template"]["spec"]
        mounts = {each["mountPath"]: each for each in pod["containers"][0]["volumeMounts"]}
        assert mounts["/data"].get("readOnly")
        assert "readOnly" not in mounts["/checkpoints"]


def test_a_new_sas_changes_the_pods_of_a_rayjob() -> None:
    spec = usual(TUNING).one(":RayJob").inputs["spec"]["rayClusterSpec"]
    (group,) = spec["workerGroupSpecs"]
    assert {"sas.ai-on-aks/data", "sas.ai-on-aks/out"} <= group["template"]["metadata"]["annotations"].keys()
    assert "sas.ai-on-aks/out" in spec["headGroupSpec"]["template"]["metadata"]["annotations"]


def test_the_dashboard_is_a_service_with_a_constant_name() -> None:
    found = usual(TUNING).shown["workloadDetails"][TUNING]
    assert found["command"] == f"kubectl logs -n blue job/mine-{TUNING}"
    assert found["dashboard"] == f"kubectl port-forward -n blue svc/mine-{TUNING}-head-svc 8265:8265"


def test_a_team_that_pins_memory_has_a_policy_instead_of_the_level() -> None:
    namespaces = {team: platform().one(":core/v1:Namespace", f"namespace-{team}") for team in ("blue", "red")}
    labels = {team: each.inputs["metadata"]["labels"] for team, each in namespaces.items()}
    assert labels["blue"]["pod-security.kubernetes.io/enforce"] == "privileged"
    assert labels["blue"]["ai-on-aks/pins-memory"] == "true"
    assert "team-pod-security-binding" in " ".join(namespaces["blue"].dependencies), "the policy comes first"
    assert labels["red"]["pod-security.kubernetes.io/enforce"] == "baseline"
    assert "ai-on-aks/pins-memory" not in labels["red"]


@pytest.mark.parametrize(("model", "gpus", "size"), [(GRANITE, 1, "100Gi"), ("Qwen/Qwen2.5-72B-Instruct", 4, "204Gi")])
def test_the_volume_of_a_model_and_its_results_is_retained(model: str, gpus: int, size: str) -> None:
    claim = stack(BATCH, model=model, gpus=gpus).one(":PersistentVolumeClaimPatch")
    assert claim.request.retainOnDelete
    assert claim.inputs["spec"]["resources"]["requests"]["storage"] == size


@pytest.mark.parametrize(("model", "warned"), [("unknown/model", 1), (GRANITE, 0)])
def test_an_unknown_model_is_a_warning(model: str, warned: int) -> None:
    with mock.patch("pulumi.log.warn") as warn:
        stack(BATCH, model=model)
    texts = [call.args[0] for call in warn.call_args_list]
    assert len([text for text in texts if f"model {model} is unknown" in text]) == warned


def test_outputs_of_a_batch_have_the_command_that_prints_its_results() -> None:
    found = stack(BATCH)
    readers, results = f"mine-{BATCH}-results", found.shown["workloadDetails"][BATCH]
    assert results["command"] == f"kubectl logs -n blue job/mine-{BATCH} -c load-generator"
    words = shlex.split(results["results"])
    assert [words[at + 1] for at, word in enumerate(words) if word == "kubectl"] == ["get", "apply", "wait", "exec"]
    assert [words[at + 1] for at, word in enumerate(words) if word == "-n"] == ["blue"] * 4
    assert words[-4:-1] == [f"job/{readers}", "--", "cat"]
    assert words[-1].startswith(f"/cache/results/mine-{BATCH}/1-")
    made = found.one(":ConfigMap", readers)
    (volume,) = json.loads(made.inputs["data"]["job"])["spec"]["template"]["spec"]["volumes"]
    claim = found.one(":PersistentVolumeClaimPatch").inputs["metadata"]["name"]
    assert volume["persistentVolumeClaim"] == {"claimName": claim}


QUEUE = "kueue.x-k8s.io/v1beta2:ClusterQueue"
STACK = {
    "vmSku": H100,
    "nodeCount": 3,
    "cluster": {"localAccounts": True},
    "operators": {"kueue": {"enabled": True}},
    "teams": {"blue": {"gpus": 8, "users": ["alice"]}, "red": {"gpus": 8, "users": ["bob"]}},
    "slackGpus": 8,
}


def test_another_node_changes_no_quota() -> None:
    three, four = (
        {
            each.name: each.inputs
            for each in program({**STACK, "nodeCount": count}).registered
            if each.type.endswith(QUEUE)
        }
        for count in (3, 4)
    )
    assert three
    assert three == four


def test_the_quota_table_lists_teams_and_the_rest() -> None:
    teams = {"blue": {"gpus": 8, "lendingLimit": 4}, "red": {"gpus": 4, "borrowingLimit": 0}}
    found = quota_table(load({**STACK, "teams": teams}))
    assert [" ".join(line.split()) for line in found.splitlines()] == [
        "quotas, of 24 GPUs that the cluster can have:",
        "8 team blue, lends at most 4",
        "4 team red, borrows at most 0",
        "8 slack, which teams borrow",
        "4 in no queue: free for more teams, or slackGpus",
    ]
    assert quota_table(load({"vmSku": H100})) == ""


def test_a_stack_without_teams_has_no_queues() -> None:
    found = program({key: value for key, value in STACK.items() if key not in ("teams", "slackGpus")})
    assert found.one(":Release", "kueue").inputs["namespace"] == "mlbatch-system"
    assert found.names(QUEUE) == []
