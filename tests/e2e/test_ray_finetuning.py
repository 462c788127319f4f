"""A fine-tuning of a team on Ray: up as its user, held, admitted as a gang, on after lost workers and nodes, finished.

One story, told in the order of the file; its platform has two nodes of eight GPUs, both teams' together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from components import images
from config.data.scheduling import COSCHEDULER, GPU_RESOURCE
from k8s.objects import Object, condition
from operators.kueue import admission, queues
from simulator.kube.client import ApiError
from tests.e2e.runs import observed
from tests.e2e.team_jobs import QUEUED, apply, as_member, container, kubectl, shared_stack, workload
from tests.support.world import Stack, World, eventually, log, names
from workloads.ray_finetuning.manifests import DASHBOARD_PORT

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
NAME, TEAM, USER = "ray-finetuning", "blue", "alice"
JOB = f"tune-{NAME}"
API = "ray.io/v1"
OPERATORS: dict[str, Any] = {"scheduler": COSCHEDULER, "kueue": {"enabled": True}, "kuberay": {"enabled": True}}
OPTIONS: dict[str, Any] = {"team": TEAM, "model": "facebook/opt-1.3b", "epochs": 600, "checkpointSteps": 50}
"""Five thousand steps of a tenth of a second."""
LOOKS_S, LOST_S = 300, 900
BEGUN = re.compile(r"from step (\d+); loss")


@pytest.fixture(scope="module")
def platform(new_stack: Callable[..., Stack]) -> Stack:
    teams = {TEAM: {"gpus": 8, "users": [USER]}, "red": {"gpus": 8, "users": ["bob"]}}
    lines = {"permissions": "rl", "upload": True}
    storage = {"sharedClass": "azurefile-csi", "protect": False, "containers": {"lines": lines}}
    return shared_stack(new_stack, "shared", nodes=2, operators=OPERATORS, teams=teams, storage=storage)


@pytest.fixture(scope="module")
def stack(platform: Stack, world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    config = {"platformStack": platform.name, "workloadOptions": {NAME: OPTIONS}}
    made = Stack.create(world, "tune", tmp_path_factory.mktemp("tune") / "project", config, like=NAME)
    yield made
    made.discard()


def job(platform: Stack) -> Object:
    """What KubeRay says of the RayJob."""
    status: Object = platform.kube.get(API, "RayJob", JOB, TEAM).get("status", {})
    return status


def pods(platform: Stack, kind: str) -> list[Object]:
    """Of the job's cluster, head or workers, that run."""
    cluster = job(platform).get("rayClusterName", "")
    labels = f"ray.io/cluster={cluster},ray.io/node-type={kind}"
    found = platform.kube.list("v1", "Pod", TEAM, labels=labels) if cluster else []
    return [pod for pod in found if pod.get("status", {}).get("phase") == "Running" and not _goes(pod)]


def _goes(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def node(platform: Stack) -> str:
    """Where its worker runs; empty while it does not."""
    return next((str(pod["spec"]["nodeName"]) for pod in pods(platform, "worker")), "")


def submitter(platform: Stack) -> str:
    """The newest; empty before there is one."""
    found = platform.kube.list("v1", "Pod", TEAM, labels=f"batch.kubernetes.io/job-name={JOB}")
    return max(
        ((str(pod["metadata"]["creationTimestamp"]), pod["metadata"]["name"]) for pod in found), default=("", "")
    )[1]


def said(platform: Stack) -> str:
    """By the newest submitter."""
    try:
        return log(platform.kube, submitter(platform), TEAM)
    except ApiError:
        return ""


def step(platform: Stack) -> int:
    """The last that it tells of."""
    found = re.findall(r"step (\d+): loss", said(platform))
    return int(found[-1]) if found else 0


def test_what_cannot_run_is_refused_before_anything_is_made(platform: Stack, stack: Stack) -> None:
    stack.set(workloadOptions={NAME: {**OPTIONS, "numNodes": 3}})
    assert "asks for 24 GPUs, and team blue can have 16 at most" in stack.pulumi("preview", check=False)
    stack.set(workloadOptions={NAME: {**OPTIONS, "model": "meta-llama/Llama-3.1-8B", "longest": 16384}})
    told = stack.pulumi("preview", check=False)
    assert "huggingFaceToken is not set, and meta-llama/Llama-3.1-8B is gated" in told
    assert "for which packs of 8192 have no room" in told
    stack.set(workloadOptions={NAME: OPTIONS})


def test_a_file_of_another_encoding_fails_the_update_before_anything_waits_for_gpus(
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
        told = " ".join(stack.up(check=False).split())
        assert "/data/a.jsonl:1 is not UTF-8, probably UTF-16: iconv -f UTF-16 -t UTF-8 /data/a.jsonl" in told
    assert platform.kube.list(API, "RayJob", TEAM) == []
    devices = [each["spec"]["podSets"] for each in platform.kube.list(queues.API, "Workload", TEAM)]
    assert devices
    assert GPU_RESOURCE not in json.dumps(devices), "nothing was queued for GPUs"
    assert "/data/a.jsonl:1 is not UTF-8" in platform.why(f"{JOB}-data", namespace=TEAM)
    upload("utf-8")
    stack.up()
    stack.up("--expect-no-changes")
    assert platform.kube.get(API, "RayJob", JOB, TEAM)
    stack.destroy()
    assert platform.kube.find("batch/v1", "Job", f"{JOB}-data", TEAM) is None
    stack.set(workloadOptions={NAME: OPTIONS})


def test_it_is_held_without_a_cluster_while_others_have_the_quota(platform: Stack, stack: Stack) -> None:
    limits = {"containers": [container(platform, "sleep", "3600")], "restartPolicy": "Never"}
    template = {"spec": {"schedulerName": COSCHEDULER, "terminationGracePeriodSeconds": 0, **limits}}
    other = {"parallelism": 2, "completions": 2, "template": template}
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "other", "labels": QUEUED}, "spec": other}
    apply(platform, made, TEAM, USER)
    eventually(lambda: condition(workload(platform, TEAM, "other"), "Admitted").get("status") == "True", "it has all")
    stack.up()
    stack.up("--expect-no-changes")
    eventually(lambda: observed(stack, platform)[NAME].report.findings, "it is told why it waits")
    (finding,) = observed(stack, platform)[NAME].report.findings
    assert "it has no quota in its queue default-queue" in finding.text
    assert names(platform.kube.list(API, "RayCluster", TEAM)) == []
    assert platform.kube.find("v1", "Namespace", "tune") is None


def test_it_is_admitted_as_a_gang_and_trains(platform: Stack, stack: Stack) -> None:
    kubectl(platform, "delete", "job", "other", "--as", USER, "-n", TEAM)
    eventually(lambda: step(platform) >= 100, "it trains", LOOKS_S)
    assert condition(workload(platform, TEAM, JOB), "Admitted")["status"] == "True"
    gang = {"scheduling.x-k8s.io/pod-group": JOB}
    for pod in (*pods(platform, "head"), *pods(platform, "worker")):
        assert pod["spec"]["schedulerName"] == COSCHEDULER
        assert gang.items() <= pod["metadata"]["labels"].items()
    assert observed(stack, platform)[NAME].phase == "Running"
    kubectl(platform, "logs", "-n", TEAM, f"job/{JOB}", "--as", USER)


def test_the_dashboard_answers_behind_a_service_whose_name_stays(platform: Stack) -> None:
    service = f"/api/v1/namespaces/{TEAM}/services/{JOB}-head-svc:dashboard/proxy/"
    assert "Ray's dashboard" in platform.kube.text(service, {})
    with pytest.raises(ApiError, match="Missing authentication token"):
        platform.kube.text(f"{service}api/version", {})


def test_a_pod_of_another_team_cannot_run_code_on_the_head(platform: Stack) -> None:
    """The simulator enforces no NetworkPolicy, so it is the token that refuses it."""
    assert platform.kube.get("networking.k8s.io/v1", "NetworkPolicy", admission.ISOLATION, TEAM)
    image = images.own(NAME, login_server=platform.outputs()["registry"], mirror=None)
    head = f"http://{job(platform)['dashboardURL']}"
    assert f".{TEAM}.svc.cluster.local:{DASHBOARD_PORT}" in head
    command = ["ray", "job", "submit", "--address", head, "--no-wait", "--", "echo", "mine"]
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": image, "command": command}]}
    metadata = {"name": "intruder", "namespace": "red"}
    platform.kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def phase() -> str:
        return str(platform.kube.get("v1", "Pod", "intruder", "red")["status"].get("phase", ""))

    eventually(lambda: phase() in ("Failed", "Succeeded"), "it ends", 120)
    assert phase() == "Failed"
    assert "401" in log(platform.kube, "intruder", "red")


def test_without_its_worker_it_goes_on_with_the_one_that_comes_instead(platform: Stack) -> None:
    before, cluster = step(platform), job(platform)["rayClusterName"]
    (worker,) = pods(platform, "worker")
    kubectl(platform, "delete", "pod", worker["metadata"]["name"], "--as", USER, "-n", TEAM, "--wait=false")
    eventually(lambda: len(BEGUN.findall(said(platform))) > 1, "it has begun anew", LOOKS_S)
    at = int(BEGUN.findall(said(platform))[-1])
    assert (at % OPTIONS["checkpointSteps"], at >= before - OPTIONS["checkpointSteps"]) == (0, True)
    assert (job(platform)["rayClusterName"], job(platform).get("failed", 0)) == (cluster, 0)
    eventually(lambda: step(platform) > at, "it trains", LOOKS_S)


def test_when_its_node_is_lost_another_cluster_goes_on_elsewhere_from_its_checkpoint(platform: Stack) -> None:
    before, cluster, lost, old = step(platform), job(platform)["rayClusterName"], node(platform), submitter(platform)
    platform.world.simulator("fault", "node", "--node", lost)
    eventually(lambda: job(platform).get("rayClusterName", cluster) not in ("", cluster), "it is tried anew", LOST_S)
    eventually(lambda: node(platform) not in ("", lost), "it runs on the other node", LOST_S)
    eventually(lambda: submitter(platform) not in ("", old), "it is submitted anew", LOST_S)
    eventually(lambda: BEGUN.search(said(platform)), "it has read its checkpoint", LOOKS_S)
    (at, *_) = map(int, BEGUN.findall(said(platform)))
    assert (at % OPTIONS["checkpointSteps"], at >= before - OPTIONS["checkpointSteps"]) == (0, True)
    assert job(platform)["failed"] == 1


def test_it_finishes_and_its_cluster_goes(platform: Stack, stack: Stack) -> None:
    eventually(lambda: observed(stack, platform)[NAME].settled, "it has ended", LOST_S)
    assert observed(stack, platform)[NAME].phase == "Succeeded"
    assert "loss of what was not learnt" in said(platform)
    eventually(lambda: names(platform.kube.list(API, "RayCluster", TEAM)) == [], "no cluster is left")
    (finished,) = platform.kube.list(queues.API, "Workload", TEAM)
    assert condition(finished, "Finished")["status"] == "True"


def test_when_its_cluster_is_gone_a_member_reads_its_evaluation_and_takes_its_adapter(
    platform: Stack, stack: Stack, tmp_path: Path
) -> None:
    lines = stack.workloads()[NAME]
    told = as_member(platform, lines["results"], USER).splitlines()
    result = json.loads(told[-1])
    assert result["after"] < result["before"]
    assert json.loads(told[-2])["step"] == result["steps"]
    as_member(platform, lines["adapter"], USER, tmp_path)
    assert json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())["r"] == 16
    kubectl(platform, "delete", "job", f"{JOB}-results", "--as", USER, "-n", TEAM)


def test_of_other_epochs_it_is_another_training_and_what_the_first_has_left_stays(
    platform: Stack, stack: Stack
) -> None:
    first = stack.workloads()[NAME]["results"]
    stack.set(workloadOptions={NAME: {**OPTIONS, "epochs": 2}})
    stack.up()
    eventually(lambda: observed(stack, platform)[NAME].settled, "it has ended", LOST_S)
    assert observed(stack, platform)[NAME].phase == "Succeeded"
    assert BEGUN.findall(said(platform)) == ["0"]
    lines = (first, stack.workloads()[NAME]["results"])
    more, fewer = (json.loads(as_member(platform, line, USER).splitlines()[-1])["steps"] for line in lines)
    assert more > fewer
    kubectl(platform, "delete", "job", f"{JOB}-results", "--as", USER, "-n", TEAM)


def test_destroy_leaves_the_platform_and_what_was_trained(platform: Stack, stack: Stack) -> None:
    platform.world.simulator("heal")
    stack.destroy()
    kinds = (
        ("v1", "Pod"),
        (API, "RayJob"),
        ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
    )
    for api, kind in kinds:
        eventually(partial(_none_is_left, platform, api, kind), f"no {kind} is left")
    assert platform.kube.list("v1", "PersistentVolumeClaim", TEAM)
    assert platform.kube.get("v1", "Namespace", TEAM)


def _none_is_left(platform: Stack, api: str, kind: str) -> bool:
    return not platform.kube.list(api, kind, TEAM)
