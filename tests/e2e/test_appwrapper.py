"""Annotations, which any user may set, shorten AppWrapper's periods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from config.data.scheduling import BAD_NODE, COSCHEDULER, GPU_RESOURCE, WRAPPER_CONFIG, WRAPPER_NAMESPACE
from k8s.objects import Object, condition, is_ready
from tests.e2e.team_jobs import QUEUED, apply, container, kubectl, shared_stack
from tests.support.manifests import manifest
from tests.support.world import CommandFailed, Stack, eventually, gpu_nodes, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
API, TEAM, USER = "workload.codeflare.dev/v1beta2", "blue", "alice"
OPERATORS: dict[str, Any] = {"appwrapper": {"enabled": True}, "kueue": {"enabled": True}, "scheduler": COSCHEDULER}
QUICKLY = {"retryPausePeriodDuration": "1s"}
TIMEOUT_S = 150
"""AppWrapper checks for changes of ready pods once a minute."""


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    teams = {TEAM: {"gpus": 16, "users": [USER]}}
    return shared_stack(new_stack, "wrapped", nodes=2, operators=OPERATORS, teams=teams)


def wrap(stack: Stack, name: str, script: str, *, image: str = "", elsewhere: str = "", **periods: str) -> None:
    main = container(stack, "bash", "-c", script) | ({"image": image} if image else {})
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [main]}
    job = manifest("batch/v1", "Job", name, elsewhere, spec={"template": {"spec": pod}})
    wrapper = manifest(API, "AppWrapper", name, labels=QUEUED, spec={"components": [{"template": job}]})
    periods = {f"workload.codeflare.dev.appwrapper/{key}": value for key, value in (QUICKLY | periods).items()}
    wrapper["metadata"]["annotations"] = periods
    apply(stack, wrapper, TEAM, USER)


def status(stack: Stack, name: str) -> Object:
    found: Object = stack.kube.get(API, "AppWrapper", name, TEAM).get("status", {})
    return found


def wait_for_phase(stack: Stack, name: str, phase: str) -> Object:
    eventually(lambda: status(stack, name).get("phase") == phase, f"{name} is {phase}", TIMEOUT_S)
    return status(stack, name)


def node_of(stack: Stack, name: str) -> str:
    pods = stack.kube.list("v1", "Pod", TEAM, labels=f"job-name={name}")
    running = [pod for pod in pods if pod["status"].get("phase") == "Running"]
    return str(running[0]["spec"]["nodeName"]) if running else ""


def unhealthy(stack: Stack, name: str) -> str:
    wrapper = stack.kube.get(API, "AppWrapper", name, TEAM)
    return str(condition(wrapper, "Unhealthy").get("reason"))


def reserved(stack: Stack) -> int:
    queue = stack.kube.get("kueue.x-k8s.io/v1beta2", "ClusterQueue", f"{TEAM}-cluster-queue")
    (flavor,) = queue["status"]["flavorsReservation"]
    return next(int(each["total"]) for each in flavor["resources"] if each["name"] == GPU_RESOURCE)


def test_the_operator_runs_and_a_second_up_changes_nothing(stack: Stack) -> None:
    stack.up("--expect-no-changes")
    (manager,) = stack.kube.list("v1", "Pod", WRAPPER_NAMESPACE)
    assert is_ready(manager)
    assert "reason" not in manager["status"], "its process really runs"


def test_a_job_is_admitted_by_the_teams_queue_and_completes(stack: Stack) -> None:
    wrap(stack, "fine", "sleep 5")
    eventually(lambda: reserved(stack) == 8, "the quota is reserved")
    wait_for_phase(stack, "fine", "Succeeded")
    (pod,) = stack.kube.list("v1", "Pod", TEAM, labels="job-name=fine")
    assert pod["spec"]["schedulerName"] == COSCHEDULER
    assert status(stack, "fine").get("resettingCount", 0) == 0
    eventually(lambda: reserved(stack) == 0, "the quota is free again")


def upstreams_containers() -> list[Object]:
    mounts = [{"name": name, "mountPath": f"/.{name}"} for name in ("cache", "config")]
    size = {"cpu": 4, "memory": "64Gi", GPU_RESOURCE: 1}
    serve = "vllm serve ibm-granite/granite-3.2-8b-instruct &\nuntil [ -f /.config/halt ]; do sleep 1; done\n"
    load = (
        "until nc -zv localhost 8000; do sleep 1; done;\npython3 benchmark_serving.py "
        "--model=ibm-granite/granite-3.2-8b-instruct --backend=vllm --dataset-name=random --random-input-len=128 "
        "--random-output-len=128 --max-concurrency=16 --num-prompts=512;\ntouch /.config/halt\n"
    )
    return [
        {
            "name": "vllm",
            "image": "quay.io/tardieu/vllm-openai:v0.7.3",
            "command": ["sh", "-c", serve],
            "ports": [{"containerPort": 8000}],
            "resources": {"requests": size, "limits": size},
            "volumeMounts": mounts,
        },
        {
            "name": "load-generator",
            "image": "quay.io/tardieu/vllm-benchmarks:v0.7.3",
            "command": ["sh", "-c", load],
            "volumeMounts": mounts,
        },
    ]


def test_upstreams_documented_appwrapper_runs_unchanged(stack: Stack) -> None:
    """The AppWrapper sets neither queue nor scheduler (project-codeflare/mlbatch, setup.KubeConEU25/README.md).

    The simulator runs vLLM without the load generator, so the test stops vLLM. Upstream's claim is of the NFS
    provisioner's class, this one of Azure Files'.
    """
    claim: Object = {"accessModes": ["ReadWriteMany"], "storageClassName": "azurefile-csi"}
    claim |= {"resources": {"requests": {"storage": "50Gi"}}}
    model = "granite-3.2-8b-instruct"
    apply(stack, manifest("v1", "PersistentVolumeClaim", model, spec=claim), TEAM, USER)
    volumes = [{"name": "cache", "persistentVolumeClaim": {"claimName": model}}, {"name": "config", "emptyDir": {}}]
    pod = {"terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "volumes": volumes}
    pod["containers"] = upstreams_containers()
    shown = {"kubectl.kubernetes.io/default-container": "load-generator"}
    template = {"metadata": {"annotations": shown, "labels": {"app": "batch-inference"}}, "spec": pod}
    name = "batch-inference"
    job = manifest("batch/v1", "Job", name, spec={"template": template})
    apply(stack, manifest(API, "AppWrapper", name, spec={"components": [{"template": job}]}), TEAM, USER)
    assert stack.kube.get(API, "AppWrapper", name, TEAM)["metadata"]["labels"].items() >= QUEUED.items()
    eventually(lambda: node_of(stack, name), "it runs", TIMEOUT_S)
    (started,) = stack.kube.list("v1", "Pod", TEAM, labels="app=batch-inference")
    assert started["spec"]["schedulerName"] == COSCHEDULER
    kubectl(stack, "exec", "-n", TEAM, started["metadata"]["name"], "-c", "vllm", "--", "touch", "/.config/halt")
    wait_for_phase(stack, name, "Succeeded")


def test_the_webhook_rejects_objects_in_other_namespaces(stack: Stack) -> None:
    with pytest.raises(CommandFailed, match="AppWrappers cannot create objects in other namespaces"):
        wrap(stack, "astray", "true", elsewhere="default")


def test_a_job_moves_off_a_node_with_the_bad_node_label_without_a_retry(stack: Stack) -> None:
    wrap(stack, "long", "sleep 3600")
    eventually(lambda: node_of(stack, "long"), "it runs", TIMEOUT_S)
    first = node_of(stack, "long")
    kubectl(stack, "label", "node", first, BAD_NODE)
    eventually(lambda: node_of(stack, "long") not in ("", first), "it runs on another node", TIMEOUT_S)
    assert set(names(gpu_nodes(stack.kube))) == {first, node_of(stack, "long")}
    found = wait_for_phase(stack, "long", "Running")
    assert found.get("resettingCount", 0) == 0
    events = [event["message"] for event in stack.kube.list("v1", "Event", TEAM)]
    assert any(f"NoExecute resources on Nodes: map[{first}:{{}}]" in text for text in events), events


def test_jobs_do_not_run_on_such_a_node_until_the_label_is_removed(stack: Stack) -> None:
    wrap(stack, "held", "sleep 1")
    eventually(lambda: stack.kube.list("v1", "Pod", TEAM, labels="job-name=held"), "it is admitted", TIMEOUT_S)
    (pod,) = stack.kube.list("v1", "Pod", TEAM, labels="job-name=held")
    eventually(lambda: "affinity" in scheduled(stack, pod), "the scheduler reports the reason")
    (label, _, _) = BAD_NODE.partition("=")
    kubectl(stack, "label", "nodes", "--all", f"{label}-")
    wait_for_phase(stack, "held", "Succeeded")


def scheduled(stack: Stack, pod: Object) -> str:
    found = stack.kube.get("v1", "Pod", pod["metadata"]["name"], TEAM)
    return str(condition(found, "PodScheduled").get("message", ""))


def test_a_failing_job_is_retried_up_to_its_limit(stack: Stack) -> None:
    wrap(stack, "failing", "exit 3", failureGracePeriodDuration="1s", retryLimit="1", retryableExitCodes="3")
    found = wait_for_phase(stack, "failing", "Failed")
    assert found["resettingCount"] == 1
    assert unhealthy(stack, "failing") in ("FoundFailedPods", "FailedComponent")
    assert "(1 of 1 retries used)" in stack.diagnose("failing", namespace=TEAM)
    eventually(lambda: not stack.kube.list("v1", "Pod", TEAM, labels="job-name=failing"), "its pods are deleted")


def test_a_job_can_set_its_warm_up_period(stack: Stack) -> None:
    missing = f"{stack.outputs()['registry']}/not-pushed:1"
    wrap(stack, "slow", "true", image=missing, warmupGracePeriodDuration="5s", retryLimit="0")
    wait_for_phase(stack, "slow", "Failed")
    assert unhealthy(stack, "slow") == "InsufficientPodsReady"


def test_a_change_of_the_warm_up_period_restarts_the_operator(stack: Stack) -> None:
    stack.set(operators={**OPERATORS, "warmUpMinutes": 45})
    changed = stack.steps()
    assert set(changed) == {
        f"kubernetes:core/v1:ConfigMap {WRAPPER_CONFIG}",
        "kubernetes:apps/v1:Deployment appwrapper-controller-manager",
        "kubernetes:helm.sh/v3:Release kueue",
    }
    log = kubectl(stack, "logs", "-n", WRAPPER_NAMESPACE, "deployment/appwrapper-controller-manager")
    assert '"warmupGracePeriod":2700000000000' in log
    assert status(stack, "long")["phase"] == "Running"


def test_disabling_the_operator_deletes_its_jobs(stack: Stack) -> None:
    stack.set(operators={**OPERATORS, "appwrapper": {"enabled": False}})
    stack.up()
    assert stack.kube.find("v1", "Namespace", WRAPPER_NAMESPACE) is None
    assert stack.kube.list("v1", "Pod", TEAM) == []
    stack.set(operators=OPERATORS)
    stack.up()
    wrap(stack, "fine", "true")
    wait_for_phase(stack, "fine", "Succeeded")
