"""Teams that share a cluster, as in seed 004: each fills its quota, one borrows, and the owner takes back its own.

One story, told in the order of the file; its stack has three nodes of eight GPUs, of which no team has the last.
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
from k8s.objects import condition
from operators.kueue import queues
from tests.e2e.node_checks import run_now
from tests.e2e.team_jobs import QUEUED, apply, container, kubectl, shared_stack, workload
from tests.support.world import CommandFailed, Stack, eventually, eventually_equals, gpu_nodes, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
TEAMS: dict[str, Any] = {"blue": {"gpus": 8, "users": ["alice"]}, "red": {"gpus": 8, "users": ["bob"]}}
MEMBER = {"blue": "alice", "red": "bob"}
SECONDS = 20
"""Within so many an owner has back what others have borrowed, on this machine."""


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    operators = {"kueue": {"enabled": True}, "scheduler": COSCHEDULER}
    return shared_stack(new_stack, "teams", nodes=3, operators=operators, teams=TEAMS, slackGpus=8)


def submit(
    stack: Stack, namespace: str, name: str, *, user: str = "", labels: Any = QUEUED, count: int = 8, **more: str
) -> None:
    """A plain Job of a user's: by default a member's, elsewhere the administrator's.

    `more` is of its pods; by default they name the stack's scheduler. Raises CommandFailed where it is refused.
    """
    main = container(stack, "sleep", "900", gpus=count)
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [main]}
    pod |= {"schedulerName": COSCHEDULER} | more
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {"template": {"spec": pod}},
    }
    apply(stack, job, namespace, user or MEMBER.get(namespace, ""))


def runs(stack: Stack, team: str, name: str) -> bool:
    job = stack.kube.get("batch/v1", "Job", name, team)
    return not job["spec"].get("suspend") and job.get("status", {}).get("ready") == 1


def ask(stack: Stack, user: str, folder: Path) -> str:
    """What `python -m diagnosis` tells the user of blue's third job."""
    own = folder / user
    own.write_text(as_user(stack.world.kubeconfig(stack.name).read_text(), user))
    command = ["env", f"KUBECONFIG={own}", sys.executable, "-m", "diagnosis", "-n", "blue", "third"]
    return " ".join(stack.world.run(command).stdout.split())


def is_held(stack: Stack, team: str, name: str) -> bool:
    """Suspended, with no pod."""
    suspended = stack.kube.get("batch/v1", "Job", name, team)["spec"]["suspend"]
    return suspended and not stack.kube.list("v1", "Pod", team, labels=f"job-name={name}")


def started(stack: Stack, team: str, name: str) -> None:
    eventually(lambda: runs(stack, team, name), f"{name} of {team} runs")


def stays_held(stack: Stack, team: str, name: str) -> None:
    """For as long as others take to start."""
    for _ in range(5):
        assert is_held(stack, team, name)
        time.sleep(1)


def borrows(stack: Stack, team: str, count: int) -> None:
    """So many GPUs, which Kueue tells a moment later."""

    def borrowed() -> int:
        (flavor,) = stack.kube.get(queues.API, "ClusterQueue", f"{team}-cluster-queue")["status"]["flavorsUsage"]
        return next(int(each["borrowed"]) for each in flavor["resources"] if each["name"] == GPU_RESOURCE)

    eventually_equals(borrowed, count, SECONDS)


def test_every_queue_is_open(stack: Stack) -> None:
    for name in ("blue", "red", "slack"):
        queue = stack.kube.get(queues.API, "ClusterQueue", f"{name}-cluster-queue")
        assert condition(queue, "Active")["status"] == "True"
    stack.up("--expect-no-changes")


def test_both_teams_fill_their_quota(stack: Stack) -> None:
    for team in TEAMS:
        submit(stack, team, "first")
    for team in TEAMS:
        started(stack, team, "first")
        borrows(stack, team, 0)


def test_one_borrows_what_no_team_has_and_beyond_that_jobs_wait(stack: Stack) -> None:
    submit(stack, "blue", "second")
    started(stack, "blue", "second")
    borrows(stack, "blue", 8)
    submit(stack, "blue", "third")
    eventually(lambda: condition(workload(stack, "blue", "third"), "QuotaReserved"), "Kueue has seen the third")
    stays_held(stack, "blue", "third")


def test_members_see_what_waits_by_the_api_that_kueues_pod_serves(stack: Stack) -> None:
    path = "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/blue/localqueues/default-queue/pendingworkloads"
    waits = yaml.safe_load(kubectl(stack, "get", "--as", "alice", "--raw", path))["items"]
    assert [each["metadata"]["ownerReferences"][0]["name"] for each in waits] == ["third"]
    with pytest.raises(CommandFailed, match="Forbidden"):
        kubectl(stack, "get", "--as", "bob", "--raw", path)


def test_members_ask_for_what_their_own_job_waits(stack: Stack, tmp_path: Path) -> None:
    assert "waits: it has no quota in its queue default-queue" in ask(stack, "alice", tmp_path)
    with pytest.raises(CommandFailed, match='User "bob" cannot list resource "pods"'):
        ask(stack, "bob", tmp_path)


def test_what_a_team_leaves_free_is_lent_and_it_has_it_back_within_seconds(stack: Stack) -> None:
    kubectl(stack, "delete", "--as", "bob", "-n", "red", "job", "first")
    started(stack, "blue", "third")
    borrows(stack, "blue", 16)
    submit(stack, "red", "again")
    before = time.monotonic()
    started(stack, "red", "again")
    assert time.monotonic() - before < SECONDS
    eventually(lambda: is_held(stack, "blue", "third"), "what was borrowed last has gone back to its queue")
    evicted = condition(workload(stack, "blue", "third"), "Preempted")
    assert (evicted["status"], evicted["reason"]) == ("True", "InCohortReclamation")
    assert runs(stack, "blue", "first")
    assert runs(stack, "blue", "second")
    borrows(stack, "blue", 8)


def test_a_teams_more_important_job_comes_before_its_newest(stack: Stack) -> None:
    submit(stack, "blue", "urgent", priorityClassName="high-priority")
    started(stack, "blue", "urgent")
    eventually(lambda: is_held(stack, "blue", "second"), "the newest has gone back to its queue")
    assert (workload(stack, "blue", "urgent")["spec"]["priority"], runs(stack, "blue", "first")) == (10, True)
    assert runs(stack, "red", "again")


def test_members_are_told_at_once_why_a_job_is_not_taken(stack: Stack) -> None:
    for why, said in (
        ({"labels": {}}, "put the label kueue.x-k8s.io/queue-name: default-queue"),
        ({"schedulerName": "default-scheduler"}, f"write schedulerName: {COSCHEDULER}"),
        ({"priorityClassName": "system-node-critical"}, "write low-priority, default-priority, high-priority, or no"),
    ):
        with pytest.raises(CommandFailed, match=said):
            submit(stack, "blue", "astray", **why)
    assert stack.kube.find("batch/v1", "Job", "astray", "blue") is None


def test_a_job_of_no_team_is_left_alone(stack: Stack) -> None:
    submit(stack, "default", "elsewhere", labels={}, count=0, schedulerName="default-scheduler")
    started(stack, "default", "elsewhere")


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
"""What members may do in their team's namespace; nothing else, and nothing anywhere else."""
NOBODYS = (
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
    """Verbs by `<group>/<resource>`, as the API server's authorizers answer; without a namespace, in all of them."""
    found: dict[str, set[str]] = {}
    for name in (*MAY, *NOBODYS):
        group, _, resource = name.partition("/")
        resource, _, subresource = resource.partition("/")
        for verb in VERBS:
            asked = {"namespace": namespace, "verb": verb, "group": group, "resource": resource}
            spec: dict[str, Any] = {"user": user, "groups": ["system:authenticated"]}
            spec["resourceAttributes"] = asked | ({"subresource": subresource} if subresource else {})
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
            path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
            if stack.kube.raw("POST", path, json=review)["status"]["allowed"]:
                found.setdefault(name, set()).add(verb)
    return found


@pytest.mark.parametrize(("user", "own"), [("alice", "blue"), ("bob", "red"), ("mallory", "")])
def test_who_may_do_what_where(stack: Stack, user: str, own: str) -> None:
    """The whole matrix of member, verb, resource and namespace."""
    for namespace in (*TEAMS, "ai", "default", "kube-system", "mlbatch-system", ""):
        assert allowed(stack, user, namespace) == (MAY if namespace == own and own else {}), namespace


def test_a_job_in_anothers_namespace_is_refused(stack: Stack) -> None:
    with pytest.raises(CommandFailed, match='User "alice" cannot .* in the namespace "red"'):
        submit(stack, "red", "trespass", user="alice")


def test_older_versions_of_queues_are_converted(stack: Stack) -> None:
    """By Kueue's webhook, whose certificate it has made itself."""
    column = "-o=jsonpath={.spec.cohort}"
    assert (
        kubectl(stack, "get", "clusterqueues.v1beta1.kueue.x-k8s.io", "blue-cluster-queue", column) == "default-cohort"
    )


def test_the_slack_queue_shrinks_with_a_node_that_turns_bad_and_grows_back(stack: Stack) -> None:
    """The job's limit is not Pulumi's: nothing is left to do, also after a refresh."""
    bad = names(gpu_nodes(stack.kube))[0]
    run_now(stack, NODE_HEALTH, NODE_TOOLS_NAMESPACE)
    assert slack(stack) in (("8", None), ("8", "8"))  # the latter if a round ran before all nodes had their drivers
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


def test_another_size_of_the_slack_queue_goes_over_the_limit_of_the_job(stack: Stack) -> None:
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
    """Returns the quota of the slack queue in GPUs, and how many of them it lends if that is limited."""
    (group,) = stack.kube.get(queues.API, "ClusterQueue", "slack-cluster-queue")["spec"]["resourceGroups"]
    (flavor,) = group["flavors"]
    gpus = next(each for each in flavor["resources"] if each["name"] == GPU_RESOURCE)
    return gpus["nominalQuota"], gpus.get("lendingLimit")


def test_another_share_and_limits_change_its_queue_and_the_sum_alone_and_a_preview_tells_the_quotas(
    stack: Stack,
) -> None:
    stack.set(teams={**TEAMS, "blue": {**TEAMS["blue"], "gpus": 4, "lendingLimit": 1, "borrowingLimit": 16}})
    told = " ".join(stack.pulumi("preview").split())
    assert "of 24 GPUs that the cluster can have: 4 team blue, lends at most 1, borrows at most 16 8 team red 8" in told
    policy = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy team-hopeless-jobs-policy"
    queue = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue blue-cluster-queue"
    assert stack.steps() == {queue: "update", policy: "update"}, "the policy knows the sum of all quotas"


def test_a_team_goes_with_its_jobs_and_leaves_the_others_theirs(stack: Stack) -> None:
    assert runs(stack, "red", "again")
    stack.set(teams={"blue": TEAMS["blue"]})
    stack.up()
    assert stack.kube.find("v1", "Namespace", "red") is None
    assert stack.kube.find(queues.API, "ClusterQueue", "red-cluster-queue") is None
    assert runs(stack, "blue", "first")


def test_destroy_leaves_nothing(stack: Stack) -> None:
    """Queues let go of their jobs while Kueue is still there."""
    assert runs(stack, "blue", "first")
    stack.destroy()
    assert not stack.world.kubeconfig("teams").exists()
