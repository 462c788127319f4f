from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from components import images
from config.data.scheduling import COSCHEDULER, GPU_RESOURCE
from k8s.objects import Object, holds
from operators.kueue import admission, queues
from simulator.kube.client import ApiError
from tests.e2e.pods import log_so_far, none_is_left
from tests.e2e.runs import observed
from tests.e2e.team_jobs import QUEUED, apply, as_member, container, kubectl, shared_stack, workload
from tests.support.manifests import manifest
from tests.support.world import Stack, eventually, log, names
from workloads.ray_finetuning.manifests import DASHBOARD_PORT

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
NAME, TEAM, USER = "ray-finetuning", "blue", "alice"
JOB = f"tune-{NAME}"
API = "ray.io/v1"
OPERATORS: dict[str, Any] = {"scheduler": COSCHEDULER, "kueue": {"enabled": True}, "kuberay": {"enabled": True}}
OPTIONS: dict[str, Any] = {"team": TEAM, "model": "facebook/opt-1.3b", "epochs": 600, "checkpointSteps": 50}
"""A job of five thousand steps of a tenth of a second."""
TIMEOUT_S, LOST_S = 300, 900
BEGUN = re.compile(r"from step (\d+); loss")


@pytest.fixture(scope="module")
def platform(new_stack: Callable[..., Stack]) -> Stack:
    teams = {TEAM: {"gpus": 8, "users": [USER]}, "red": {"gpus": 8, "users": ["bob"]}}
    lines = {"permissions": "rl", "upload": True}
    storage = {"sharedClass": "azurefile-csi", "protect": False, "containers": {"lines": lines}}
    return shared_stack(new_stack, "shared", nodes=2, operators=OPERATORS, teams=teams, storage=storage)


@pytest.fixture(scope="module")
def stack(platform: Stack, new_stack: Callable[..., Stack]) -> Stack:
    return new_stack("tune", NAME, platformStack=platform.name, workloadOptions={NAME: OPTIONS})


def job(platform: Stack) -> Object:
    status: Object = platform.kube.get(API, "RayJob", JOB, TEAM).get("status", {})
    return status


def pods(platform: Stack, kind: str) -> list[Object]:
    cluster = job(platform).get("rayClusterName", "")
    labels = f"ray.io/cluster={cluster},ray.io/node-type={kind}"
    found = platform.kube.list("v1", "Pod", TEAM, labels=labels) if cluster else []
    running = (pod for pod in found if pod.get("status", {}).get("phase") == "Running")
    return [pod for pod in running if "deletionTimestamp" not in pod["metadata"]]


def node(platform: Stack) -> str:
    return next((str(pod["spec"]["nodeName"]) for pod in pods(platform, "worker")), "")


def submitter(platform: Stack) -> str:
    found = platform.kube.list("v1", "Pod", TEAM, labels=f"batch.kubernetes.io/job-name={JOB}")
    pods = [(str(pod["metadata"]["creationTimestamp"]), str(pod["metadata"]["name"])) for pod in found]
    return max(pods, default=("", ""))[1]


def logs(platform: Stack) -> str:
    return log_so_far(platform.kube, submitter(platform), TEAM)


def step(platform: Stack) -> int:
    found = re.findall(r"step (\d+): loss", logs(platform))
    return int(found[-1]) if found else 0


def test_a_file_with_a_wrong_encoding_fails_the_update_before_anything_waits_for_gpus(
    platform: Stack, stack: Stack, tmp_path: Path
) -> None:
    outputs = platform.outputs("--show-secrets")
    url = f"{outputs['platform']['containers']['lines']['url']}/a.jsonl?{outputs['sas']['lines']['uploadSas']}"

    def upload(encoding: str) -> None:
        (tmp_path / "a.jsonl").write_text('{"text": "an example"}\n' * 200, encoding=encoding)
        command = ["curl", "-sf", "-T", "a.jsonl", "-H", "x-ms-blob-type: BlockBlob", url]
        platform.world.run(command, cwd=tmp_path)

    upload("utf-16")
    stack.set(workloadOptions={NAME: {**OPTIONS, "dataContainer": "lines"}})
    for _ in range(2):  # the second update runs the check again
        output = " ".join(stack.up(check=False).split())
        assert "/data/a.jsonl:1 is not UTF-8, probably UTF-16: iconv -f UTF-16 -t UTF-8 /data/a.jsonl" in output
    assert platform.kube.list(API, "RayJob", TEAM) == []
    pod_sets = [each["spec"]["podSets"] for each in platform.kube.list(queues.API, "Workload", TEAM)]
    assert pod_sets
    assert GPU_RESOURCE not in json.dumps(pod_sets), "nothing was queued for GPUs"
    assert "/data/a.jsonl:1 is not UTF-8" in platform.diagnose(f"{JOB}-data", namespace=TEAM)
    upload("utf-8")
    stack.up()
    stack.up("--expect-no-changes")
    assert platform.kube.get(API, "RayJob", JOB, TEAM)
    stack.destroy()
    assert platform.kube.find("batch/v1", "Job", f"{JOB}-data", TEAM) is None
    stack.set(workloadOptions={NAME: OPTIONS})


def test_it_waits_without_a_cluster_while_another_job_has_the_quota(platform: Stack, stack: Stack) -> None:
    limits = {"containers": [container(platform, "sleep", "3600")], "restartPolicy": "Never"}
    template = {"spec": {"schedulerName": COSCHEDULER, "terminationGracePeriodSeconds": 0, **limits}}
    other = {"parallelism": 2, "completions": 2, "template": template}
    apply(platform, manifest("batch/v1", "Job", "other", labels=QUEUED, spec=other), TEAM, USER)
    eventually(lambda: holds(workload(platform, TEAM, "other"), "Admitted"), "the other job is admitted")
    stack.up()
    stack.up("--expect-no-changes")
    eventually(lambda: observed(stack, platform)[NAME].report.findings, "diagnosis reports why it waits")
    (finding,) = observed(stack, platform)[NAME].report.findings
    assert "it has no quota in its queue default-queue" in finding.text
    assert names(platform.kube.list(API, "RayCluster", TEAM)) == []
    assert platform.kube.find("v1", "Namespace", "tune") is None


def test_it_is_admitted_as_a_gang_and_trains(platform: Stack, stack: Stack) -> None:
    kubectl(platform, "delete", "job", "other", "--as", USER, "-n", TEAM)
    eventually(lambda: step(platform) >= 100, "it trains", TIMEOUT_S)
    assert holds(workload(platform, TEAM, JOB), "Admitted")
    gang = {"scheduling.x-k8s.io/pod-group": JOB}
    for pod in (*pods(platform, "head"), *pods(platform, "worker")):
        assert pod["spec"]["schedulerName"] == COSCHEDULER
        assert gang.items() <= pod["metadata"]["labels"].items()
    assert observed(stack, platform)[NAME].phase == "Running"
    kubectl(platform, "logs", "-n", TEAM, f"job/{JOB}", "--as", USER)


def test_the_dashboard_answers_behind_a_service_with_a_fixed_name(platform: Stack) -> None:
    service = f"/api/v1/namespaces/{TEAM}/services/{JOB}-head-svc:dashboard/proxy/"
    assert "Ray's dashboard" in platform.kube.text(service, {})
    with pytest.raises(ApiError, match="Missing authentication token"):
        platform.kube.text(f"{service}api/version", {})


def test_a_pod_of_another_team_cannot_run_code_on_the_head(platform: Stack) -> None:
    """The simulator does not enforce NetworkPolicies, so only the missing token prevents it."""
    assert platform.kube.get("networking.k8s.io/v1", "NetworkPolicy", admission.ISOLATION, TEAM)
    image = images.own(NAME, login_server=platform.outputs()["registry"], mirror=None)
    head = f"http://{job(platform)['dashboardURL']}"
    assert f".{TEAM}.svc.cluster.local:{DASHBOARD_PORT}" in head
    command = ["ray", "job", "submit", "--address", head, "--no-wait", "--", "echo", "mine"]
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": image, "command": command}]}
    platform.kube.create(manifest("v1", "Pod", "intruder", "red", spec=spec))

    def phase() -> str:
        return str(platform.kube.get("v1", "Pod", "intruder", "red")["status"].get("phase", ""))

    eventually(lambda: phase() in ("Failed", "Succeeded"), "it ends", 120)
    assert phase() == "Failed"
    assert "401" in log(platform.kube, "intruder", "red")


def test_after_its_worker_is_deleted_it_resumes_with_a_new_one(platform: Stack) -> None:
    before, cluster = step(platform), job(platform)["rayClusterName"]
    (worker,) = pods(platform, "worker")
    kubectl(platform, "delete", "pod", worker["metadata"]["name"], "--as", USER, "-n", TEAM, "--wait=false")
    eventually(lambda: len(BEGUN.findall(logs(platform))) > 1, "it has started again", TIMEOUT_S)
    at = int(BEGUN.findall(logs(platform))[-1])
    assert (at % OPTIONS["checkpointSteps"], at >= before - OPTIONS["checkpointSteps"]) == (0, True)
    assert (job(platform)["rayClusterName"], job(platform).get("failed", 0)) == (cluster, 0)
    eventually(lambda: step(platform) > at, "it trains", TIMEOUT_S)


def test_when_its_node_is_lost_another_cluster_resumes_from_its_checkpoint(platform: Stack) -> None:
    before, cluster, lost, old = step(platform), job(platform)["rayClusterName"], node(platform), submitter(platform)
    platform.world.simulator("fault", "node", "--node", lost)
    eventually(lambda: job(platform).get("rayClusterName", cluster) not in ("", cluster), "it is retried", LOST_S)
    eventually(lambda: node(platform) not in ("", lost), "it runs on the other node", LOST_S)
    eventually(lambda: submitter(platform) not in ("", old), "it is submitted again", LOST_S)
    eventually(lambda: BEGUN.search(logs(platform)), "it has read its checkpoint", TIMEOUT_S)
    (at, *_) = map(int, BEGUN.findall(logs(platform)))
    assert (at % OPTIONS["checkpointSteps"], at >= before - OPTIONS["checkpointSteps"]) == (0, True)
    assert job(platform)["failed"] == 1


def test_it_finishes_and_its_cluster_is_deleted(platform: Stack, stack: Stack) -> None:
    eventually(lambda: observed(stack, platform)[NAME].settled, "it has ended", LOST_S)
    assert observed(stack, platform)[NAME].phase == "Succeeded"
    assert "evaluation loss" in logs(platform)
    eventually(lambda: names(platform.kube.list(API, "RayCluster", TEAM)) == [], "no cluster is left")
    (finished,) = platform.kube.list(queues.API, "Workload", TEAM)
    assert holds(finished, "Finished")


def test_a_member_reads_its_evaluation_and_copies_its_adapter(platform: Stack, stack: Stack, tmp_path: Path) -> None:
    """The outputs' commands also work after the cluster is deleted."""
    commands = stack.workloads()[NAME]
    lines = as_member(platform, commands["results"], USER).splitlines()
    result = json.loads(lines[-1])
    assert result["after"] < result["before"]
    assert json.loads(lines[-2])["step"] == result["steps"]
    as_member(platform, commands["adapter"], USER, tmp_path)
    assert json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())["r"] == 16
    kubectl(platform, "delete", "job", f"{JOB}-results", "--as", USER, "-n", TEAM)


def test_other_epochs_are_another_training_and_keep_the_first_results(platform: Stack, stack: Stack) -> None:
    first = stack.workloads()[NAME]["results"]
    stack.set(workloadOptions={NAME: {**OPTIONS, "epochs": 2}})
    stack.up()
    eventually(lambda: observed(stack, platform)[NAME].settled, "it has ended", LOST_S)
    assert observed(stack, platform)[NAME].phase == "Succeeded"
    assert BEGUN.findall(logs(platform)) == ["0"]
    lines = (first, stack.workloads()[NAME]["results"])
    more, fewer = (json.loads(as_member(platform, line, USER).splitlines()[-1])["steps"] for line in lines)
    assert more > fewer
    kubectl(platform, "delete", "job", f"{JOB}-results", "--as", USER, "-n", TEAM)


def test_destroy_keeps_the_platform_and_the_results(platform: Stack, stack: Stack) -> None:
    platform.world.simulator("heal")
    stack.destroy()
    for api, kind in (("v1", "Pod"), (API, "RayJob"), ("scheduling.x-k8s.io/v1alpha1", "PodGroup")):
        eventually(partial(none_is_left, platform.kube, api, kind, TEAM), f"no {kind} is left")
    assert platform.kube.list("v1", "PersistentVolumeClaim", TEAM)
    assert platform.kube.get("v1", "Namespace", TEAM)
