"""Workloads as a whole, and how the command reads a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosis import kubectl
from diagnosis.__main__ import main
from diagnosis.cluster import DEPLOYMENT, NODE, POD, REPLICA_SET, VOLCANO_JOB, Cluster, Kind, Object
from diagnosis.finding import Finding
from diagnosis.report import report
from tests.diagnosis import objects as make

QUOTA = (
    'Error creating: pods "train-" is forbidden: exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2'
)
"""As the Job controller and Kubernetes' quota plugin word it."""


def test_a_workload_that_is_not_there() -> None:
    assert report(make.cluster(), "ai", "train").lines() == ["train: Gone there is no such object in the cluster"]


def test_a_workload_of_the_same_name_elsewhere_is_another() -> None:
    assert report(make.cluster(make.job()), "other", "train").phase == "Gone"


def test_one_that_is_done_is_not_looked_at_further() -> None:
    kind, job = make.job()
    job["status"] = {"conditions": [{"type": "Complete", "status": "True", "message": "as it should"}]}
    pod = make.pod("train-0", owner="train", on="a", **make.waiting("ErrImagePull", "not found"))
    assert report(make.cluster((kind, job), pod), "ai", "train").lines() == ["train: Complete as it should"]


def test_pods_of_a_deployment_are_those_of_its_replica_sets() -> None:
    deployment = {"metadata": {"name": "train", "uid": "train", "namespace": "ai"}, "spec": {}, "status": {}}
    replicas = {"metadata": {"name": "rs", "uid": "rs", "namespace": "ai", "ownerReferences": make.owned_by("train")}}
    pod = make.pod("train-x", owner="rs", on="a", **make.waiting("CrashLoopBackOff"))
    found = report(make.cluster((DEPLOYMENT, deployment), (REPLICA_SET, replicas), pod), "ai", "train")
    assert (found.kind, found.findings[0].why) == ("deployment", "pod train-x: CrashLoopBackOff")


def test_pods_of_another_workload_whose_name_begins_alike_are_not_its_own() -> None:
    other = make.pod("train-data-0", owner="train-data", on="a", **make.waiting("CrashLoopBackOff"))
    found = report(
        make.cluster(make.job(template=make.worker("x")[1]), other, make.node("a", gpu=8, nics=8)), "ai", "train"
    )
    assert found.findings == ()


def test_a_quota_that_keeps_its_pods_from_being_made() -> None:
    job = make.job(parallelism=1, template=make.worker("x")[1])
    refused = make.event(job, "FailedCreate", QUOTA)
    found = report(make.cluster(job, refused, make.node("a", gpu=8, nics=8)), "ai", "train")
    assert make.told(found) == [f"waits: {QUOTA}", "do: kubectl get events -n ai"]


def test_a_suspended_job() -> None:
    job = make.job(suspend=True, template=make.worker("x")[1])
    assert report(make.cluster(job), "ai", "train").lines()[1] == "  waits: it is suspended"


def test_pods_are_read_once_for_a_second_read_might_find_them_elsewhere() -> None:
    reads: list[str] = []
    pods = [make.worker(f"train-{number}")[1] for number in range(2)]

    def read(kind: Kind, namespace: str) -> list[Object]:
        if kind == POD:
            reads.append(namespace)
        return pods if kind == POD else [make.volcano_job()[1]] if kind == VOLCANO_JOB else []

    report(Cluster(read), "ai", "train")
    assert reads == [""]


def test_volcanos_controllers_are_off() -> None:
    job = make.volcano_job(tasks=[])
    off = Cluster(lambda kind, namespace: [job[1]] if kind == VOLCANO_JOB else [])
    assert report(off, "ai", "train").lines()[1] == "  waits: Volcano's controllers do not run"


def test_lines_fit_a_terminal_and_commands_stay_whole_to_be_copied() -> None:
    why = (
        "0/3 nodes are unavailable: 1 node(s) didn't match Pod's node affinity/selector, 2 Insufficient nvidia.com/gpu."
    )
    command = "kubectl get pods -A -o wide --field-selector spec.nodeName=aks-gpu4082-30870709-vmss000001"
    assert Finding(why, f"{command}    # all of them must end").lines() == [
        "  waits: 0/3 nodes are unavailable: 1 node(s) didn't match Pod's node",
        "         affinity/selector, 2 Insufficient nvidia.com/gpu.",
        f"    do: {command}",
        "        # all of them must end",
    ]


# -- kubectl -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubectl whose script a test writes."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "kubectl"


def script(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def test_kubectl_is_asked_for_a_kind_by_its_whole_name(fake: Path) -> None:
    script(fake, """printf '{"items": [{"metadata": {"name": "%s"}}]}' "$*" """)
    (found,) = kubectl.read(VOLCANO_JOB, "ai")
    assert found["metadata"]["name"] == "get jobs.v1alpha1.batch.volcano.sh --namespace ai --output json"
    (found,) = kubectl.read(NODE, "")
    assert found["metadata"]["name"] == "get nodes --all-namespaces --output json --show-managed-fields"


def test_a_kind_that_the_cluster_does_not_have_has_no_objects(fake: Path) -> None:
    script(fake, """echo "error: the server doesn't have a resource type \\"jobs\\"" >&2; exit 1""")
    assert kubectl.read(VOLCANO_JOB, "ai") == []


def test_what_kubectl_refuses_is_told_in_its_words(fake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(fake, "echo 'error: You must be logged in to the server (Unauthorized)' >&2; exit 1")
    with pytest.raises(kubectl.KubectlFailed, match="logged in"):
        kubectl.read(POD, "ai")
    assert main(["-n", "ai", "train"]) == 1
    assert capsys.readouterr().err.endswith("error: You must be logged in to the server (Unauthorized)\n")


def test_no_kubectl_at_all(fake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", str(fake.parent))
    assert main(["-n", "ai", "train"]) == 1
    assert capsys.readouterr().err == "error: kubectl cannot be started: No such file or directory\n"


def test_a_workload_that_is_missing_is_an_error_which_names_those_there_are(
    fake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    olmo = '{"metadata": {"name": "olmo", "uid": "1", "namespace": "ai"}, "spec": {"suspend": true}, "status": {}}'
    script(fake, f"""case "$2" in jobs.v1.batch) echo '{{"items": [{olmo}]}}';; *) echo '{{"items": []}}';; esac""")
    assert main(["-n", "ai", "olmo"]) == 0
    assert main(["-n", "ai", "oldmo", "olmo"]) == 1
    said = capsys.readouterr()
    assert said.out.count("olmo: Pending") == 2
    assert said.err == "error: namespace ai has no workload oldmo; it has olmo\n"


def test_without_a_workload_the_platform_is_looked_at(fake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(fake, """echo '{"items": []}'""")
    assert main([]) == 0
    assert capsys.readouterr().out == "platform: Ready\n"
