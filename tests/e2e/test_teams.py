"""Teams that share a cluster, as in project-codeflare/mlbatch.

The stack has three nodes of eight GPUs: one for each of two teams, one as slack.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.access.kubeconfig import as_user
from config.data.scheduling import BAD_NODE, COSCHEDULER, GPU_RESOURCE
from config.schema.operators import NODE_HEALTH, NODE_TOOLS_NAMESPACE
from k8s.objects import condition, holds
from operators.kueue import queues
from tests.e2e.node_checks import run_now
from tests.e2e.team_jobs import QUEUED, apply, container, kubectl, quota_reserved, shared_stack, workload
from tests.support.manifests import manifest
from tests.support.world import CommandFailed, Stack, eventually, eventually_equals, gpu_nodes, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
TEAMS: dict[str, Any] = {"blue": {"gpus": 8, "users": ["alice"]}, "red": {"gpus": 8, "users": ["bob"]}}
MEMBER = {"blue": "alice", "red": "bob"}
SECONDS = 20


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    operators = {"kueue": {"enabled": True}, "scheduler": COSCHEDULER}
    return shared_stack(new_stack, "teams", nodes=3, operators=operators, teams=TEAMS, slackGpus=8)


def submit(
    stack: Stack, namespace: str, name: str, *, user: str = "", labels: Any = QUEUED, count: int = 8, **more: str
) -> None:
    """Creates a Job, by default as the team's member or, without a team, as the administrator.

    `more` has fields of its pods' spec.
    """
    main = container(stack, "sleep", "900", gpus=count)
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [main]}
    pod |= {"schedulerName": COSCHEDULER} | more
    job = manifest("batch/v1", "Job", name, labels=labels, spec={"template": {"spec": pod}})
    apply(stack, job, namespace, user or MEMBER.get(namespace, ""))


def runs(stack: Stack, team: str, name: str) -> bool:
    job = stack.kube.get("batch/v1", "Job", name, team)
    return not job["spec"].get("suspend") and job.get("status", {}).get("ready") == 1


def diagnose(stack: Stack, user: str, folder: Path) -> str:
    own = folder / user
    own.write_text(as_user(stack.world.kubeconfig(stack.name).read_text(), user))
    command = ["env", f"KUBECONFIG={own}", sys.executable, "-m", "diagnosis", "-n", "blue", "third"]
    return " ".join(stack.world.run(command).stdout.split())


def is_held(stack: Stack, team: str, name: str) -> bool:
    suspended = stack.kube.get("batch/v1", "Job", name, team)["spec"]["suspend"]
    return suspended and not stack.kube.list("v1", "Pod", team, labels=f"job-name={name}")


def wait_until_started(stack: Stack, team: str, name: str) -> None:
    eventually(lambda: runs(stack, team, name), f"{name} of {team} runs")


def check_stays_held(stack: Stack, team: str, name: str) -> None:
    """Waits five seconds, in which other jobs start."""
    for _ in range(5):
        assert is_held(stack, team, name)
        time.sleep(1)


def wait_until_borrowed(stack: Stack, team: str, count: int) -> None:
    def borrowed() -> int:
        (flavor,) = stack.kube.get(queues.API, "ClusterQueue", f"{team}-cluster-queue")["status"]["flavorsUsage"]
        return next(int(each["borrowed"]) for each in flavor["resources"] if each["name"] == GPU_RESOURCE)

    eventually_equals(borrowed, count, SECONDS)


def test_every_queue_is_active(stack: Stack) -> None:
    for name in ("blue", "red", "slack"):
        assert holds(stack.kube.get(queues.API, "ClusterQueue", f"{name}-cluster-queue"), "Active")
    stack.up("--expect-no-changes")


def test_both_teams_use_their_quota(stack: Stack) -> None:
    for team in TEAMS:
        submit(stack, team, "first")
    for team in TEAMS:
        wait_until_started(stack, team, "first")
        wait_until_borrowed(stack, team, 0)


def test_a_team_borrows_the_slack_and_its_next_job_waits(stack: Stack) -> None:
    submit(stack, "blue", "second")
    wait_until_started(stack, "blue", "second")
    wait_until_borrowed(stack, "blue", 8)
    submit(stack, "blue", "third")
    eventually(lambda: quota_reserved(stack, "blue", "third"), "Kueue has seen the third")
    check_stays_held(stack, "blue", "third")


def test_members_see_waiting_jobs_in_kueues_visibility_api(stack: Stack) -> None:
    path = "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/blue/localqueues/default-queue/pendingworkloads"
    waiting = yaml.safe_load(kubectl(stack, "get", "--as", "alice", "--raw", path))["items"]
    assert [each["metadata"]["ownerReferences"][0]["name"] for each in waiting] == ["third"]
    with pytest.raises(CommandFailed, match="Forbidden"):
        kubectl(stack, "get", "--as", "bob", "--raw", path)


def test_members_can_diagnose_only_their_teams_jobs(stack: Stack, tmp_path: Path) -> None:
    assert "waits: it has no quota in its queue default-queue" in diagnose(stack, "alice", tmp_path)
    with pytest.raises(CommandFailed, match='User "bob" cannot list resource "pods"'):
        diagnose(stack, "bob", tmp_path)


def test_a_team_reclaims_lent_gpus_within_seconds(stack: Stack) -> None:
    kubectl(stack, "delete", "--as", "bob", "-n", "red", "job", "first")
    wait_until_started(stack, "blue", "third")
    wait_until_borrowed(stack, "blue", 16)
    submit(stack, "red", "again")
    before = time.monotonic()
    wait_until_started(stack, "red", "again")
    assert time.monotonic() - before < SECONDS
    eventually(lambda: is_held(stack, "blue", "third"), "the last borrower is back in its queue")
    evicted = condition(workload(stack, "blue", "third"), "Preempted")
    assert (evicted["status"], evicted["reason"]) == ("True", "InCohortReclamation")
    assert runs(stack, "blue", "first")
    assert runs(stack, "blue", "second")
    wait_until_borrowed(stack, "blue", 8)


def test_a_job_with_a_higher_priority_preempts_the_teams_newest(stack: Stack) -> None:
    submit(stack, "blue", "urgent", priorityClassName="high-priority")
    wait_until_started(stack, "blue", "urgent")
    eventually(lambda: is_held(stack, "blue", "second"), "the newest job is back in its queue")
    assert (workload(stack, "blue", "urgent")["spec"]["priority"], runs(stack, "blue", "first")) == (10, True)
    assert runs(stack, "red", "again")


def test_a_job_without_a_team_is_not_queued(stack: Stack) -> None:
    submit(stack, "default", "elsewhere", labels={}, count=0, schedulerName="default-scheduler")
    wait_until_started(stack, "default", "elsewhere")


READ, END = {"get", "list", "watch"}, {"get", "list", "watch", "delete"}
EDIT = END | {"create", "update", "patch"}
MAY: dict[str, set[str]] = {
    "batch/jobs": EDIT,
    "kubeflow.org/pytorchjobs": EDIT,
    "ray.io/rayjobs": EDIT,
    "ray.io/rayclusters": EDIT,
    "workload.codeflare.dev/appwrappers": EDIT,
    "scheduling.x-k8s.io/podgroups": EDIT,
    "/configmaps": EDIT,
    "/secrets": EDIT,
    "/services": EDIT,
    "/persistentvolumeclaims": EDIT,
    "/pods": END,
    "apps/deployments": END,
    "apps/statefulsets": END,
    "/events": READ,
    "/namespaces": {"get"},
    "/pods/log": {"get"},
    "/pods/exec": {"create"},
    "/pods/portforward": {"create"},
    "kueue.x-k8s.io/localqueues": READ,
    "kueue.x-k8s.io/workloads": READ,
    "visibility.kueue.x-k8s.io/localqueues/pendingworkloads": {"get"},
}
"""Members' rights in their team's namespace. They have no others."""
FORBIDDEN = (
    "apps/daemonsets",
    "batch/cronjobs",
    "ray.io/rayservices",
    "kueue.x-k8s.io/clusterqueues",
    "kueue.x-k8s.io/resourceflavors",
    "rbac.authorization.k8s.io/rolebindings",
    "rbac.authorization.k8s.io/clusterrolebindings",
    "admissionregistration.k8s.io/validatingadmissionpolicybindings",
    "networking.k8s.io/networkpolicies",
    "networking.k8s.io/ingresses",
    "scheduling.k8s.io/priorityclasses",
    "/resourcequotas",
    "/serviceaccounts",
    "/serviceaccounts/token",
    "/pods/ephemeralcontainers",
    "/nodes",
    "/persistentvolumes",
)
VERBS = (*sorted(EDIT), "deletecollection", "impersonate", "bind", "escalate")


def allowed(stack: Stack, user: str, namespace: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name in (*MAY, *FORBIDDEN):
        group, _, resource = name.partition("/")
        resource, _, subresource = resource.partition("/")
        for verb in VERBS:
            attributes = {"namespace": namespace, "verb": verb, "group": group, "resource": resource}
            spec: dict[str, Any] = {"user": user, "groups": ["system:authenticated"]}
            spec["resourceAttributes"] = attributes | ({"subresource": subresource} if subresource else {})
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
            path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
            if stack.kube.raw("POST", path, json=review)["status"]["allowed"]:
                found.setdefault(name, set()).add(verb)
    return found


@pytest.mark.parametrize(("user", "own"), [("alice", "blue"), ("bob", "red"), ("mallory", "")])
def test_users_have_rights_only_in_their_teams_namespace(stack: Stack, user: str, own: str) -> None:
    for namespace in (*TEAMS, "ai", "default", "kube-system", "mlbatch-system", ""):
        assert allowed(stack, user, namespace) == (MAY if namespace == own and own else {}), namespace


def test_rejects_a_job_in_another_teams_namespace(stack: Stack) -> None:
    with pytest.raises(CommandFailed, match='User "alice" cannot .* in the namespace "red"'):
        submit(stack, "red", "trespass", user="alice")


def test_kueues_webhook_converts_older_versions_of_queues(stack: Stack) -> None:
    query = ("clusterqueues.v1beta1.kueue.x-k8s.io", "blue-cluster-queue", "-o=jsonpath={.spec.cohort}")
    assert kubectl(stack, "get", *query) == "default-cohort"


def test_the_slack_queue_lends_less_while_a_node_is_bad(stack: Stack) -> None:
    """The CronJob sets the lending limit, and Pulumi ignores it, even after a refresh."""
    bad = names(gpu_nodes(stack.kube))[0]
    run_now(stack, NODE_HEALTH, NODE_TOOLS_NAMESPACE)
    assert slack(stack) in (("8", None), ("8", "8"))  # the latter if a job ran before all nodes had drivers
    kubectl(stack, "label", "node", bad, BAD_NODE)
    run_now(stack, NODE_HEALTH, NODE_TOOLS_NAMESPACE)
    assert slack(stack) == ("8", "0")
    stack.up("--expect-no-changes")
    stack.up("--refresh")
    assert slack(stack) == ("8", "0")
    stack.up("--expect-no-changes")
    kubectl(stack, "label", "node", bad, f"{BAD_NODE.partition('=')[0]}-")
    run_now(stack, NODE_HEALTH, NODE_TOOLS_NAMESPACE)
    assert slack(stack) == ("8", "8")


def test_another_size_of_the_slack_queue_removes_the_lending_limit(stack: Stack) -> None:
    bad = names(gpu_nodes(stack.kube))[0]
    kubectl(stack, "cordon", bad)
    run_now(stack, NODE_HEALTH, NODE_TOOLS_NAMESPACE)
    assert slack(stack) == ("8", "0")
    stack.set(slackGpus=4)
    policy = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy team-hopeless-jobs-policy"
    queue = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue slack-cluster-queue"
    assert stack.steps() == {queue: "update", policy: "update"}
    stack.up()
    assert slack(stack) == ("4", None)
    run_now(stack, NODE_HEALTH, NODE_TOOLS_NAMESPACE)
    assert slack(stack) == ("4", "0")
    kubectl(stack, "uncordon", bad)
    stack.set(slackGpus=8)
    stack.up()
    run_now(stack, NODE_HEALTH, NODE_TOOLS_NAMESPACE)
    assert slack(stack) == ("8", None)


def slack(stack: Stack) -> tuple[str, str | None]:
    (group,) = stack.kube.get(queues.API, "ClusterQueue", "slack-cluster-queue")["spec"]["resourceGroups"]
    (flavor,) = group["flavors"]
    gpus = next(each for each in flavor["resources"] if each["name"] == GPU_RESOURCE)
    return gpus["nominalQuota"], gpus.get("lendingLimit")


def test_another_quota_of_a_team_updates_only_its_queue_and_the_policy_with_the_sum(stack: Stack) -> None:
    stack.set(teams={**TEAMS, "blue": {**TEAMS["blue"], "gpus": 4, "lendingLimit": 1, "borrowingLimit": 16}})
    policy = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy team-hopeless-jobs-policy"
    queue = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue blue-cluster-queue"
    assert stack.steps() == {queue: "update", policy: "update"}


def test_removing_a_team_deletes_its_jobs_and_keeps_those_of_others(stack: Stack) -> None:
    assert runs(stack, "red", "again")
    stack.set(teams={"blue": TEAMS["blue"]})
    stack.up()
    assert stack.kube.find("v1", "Namespace", "red") is None
    assert stack.kube.find(queues.API, "ClusterQueue", "red-cluster-queue") is None
    assert runs(stack, "blue", "first")


def test_destroy_leaves_nothing(stack: Stack) -> None:
    """Deletes workloads before Kueue, which must remove their finalizers."""
    assert runs(stack, "blue", "first")
    stack.destroy()
    assert not stack.world.kubeconfig("teams").exists()
