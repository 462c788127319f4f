"""What a member of a team is told, who sees one namespace, and no nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from diagnosis import __main__ as command
from diagnosis import kubectl
from diagnosis.cluster import EVENT, JOB, POD, PYTORCH_JOB, QUEUED, Kind
from k8s.objects import Object
from tests.unit.diagnosis import objects as make

NOT_SEEN = "not looked at: nodes, and what is in other namespaces."
Look = Callable[..., tuple[int, str, str]]


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Look:
    """Runs the command as a member of the team `ai` of a cluster with these objects: exit code, output and errors."""

    def run(*objects: tuple[Kind, Object], ask: str = "-n ai train") -> tuple[int, str, str]:
        def read(kind: Kind, namespace: str) -> list[Object]:
            if namespace != "ai" or kind not in (EVENT, JOB, POD, PYTORCH_JOB, QUEUED):
                raise kubectl.Forbidden(f"cannot list resource {kind.plural}\n{kubectl.hint('(Forbidden)')}")
            return make.cluster(*objects).all(kind, namespace)

        monkeypatch.setattr(kubectl, "read", read)
        code = command.main(ask.split())
        told = capsys.readouterr()
        return code, " ".join(told.out.split()), " ".join(told.err.split())

    return run


def test_what_kueue_says_of_a_job_that_waits(look: Look) -> None:
    code, out, _ = look(make.job(suspend=True), make.queued("default-queue", "insufficient quota for nvidia.com/gpu"))
    assert code == 0
    assert "it has no quota in its queue default-queue: insufficient quota for nvidia.com/gpu" in out
    assert NOT_SEEN in out


def test_what_the_scheduler_says_and_nothing_of_nodes_of_which_nothing_is_known(look: Look) -> None:
    said = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    _, out, _ = look(make.job(), make.worker("train-0", said=said), make.node("gpu-0", gpu=8, nics=8))
    assert f"the scheduler says: {said}" in out
    assert "there is no node" not in out
    assert "does not run" not in out


def test_a_pod_that_cannot_start_on_its_node(look: Look) -> None:
    """Which is there: that it is not seen does not make it a lost one."""
    pulls = make.waiting("ErrImagePull", 'failed to resolve "ai.azurecr.io/own:1": not found', "ai.azurecr.io/own:1")
    _, out, _ = look(make.job(), make.pod("train-0", owner="train", on="gpu-0", **pulls))
    assert "its registry does not have the image ai.azurecr.io/own:1" in out
    assert "gone" not in out


def test_a_job_that_is_not_there_is_told_with_those_that_are(look: Look) -> None:
    code, out, errors = look(make.job("other"))
    assert (code, out) == (1, "")
    assert errors == "error: namespace ai has no workload train; it has other"


@pytest.mark.parametrize("ask", ["-n ai", "-n red train"])
def test_the_platform_and_other_teams_are_not_theirs_to_look_at(look: Look, ask: str) -> None:
    code, out, errors = look(make.job(), ask=ask)
    assert (code, out) == (1, "")
    assert "Members of a team ask of what is theirs: python -m diagnosis -n <namespace> <workload>" in errors


def test_who_sees_all_is_told_of_nodes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    there = make.cluster(make.job(), make.worker("train-0", said="0/1 nodes are available"), make.node("gpu-0"))
    monkeypatch.setattr(kubectl, "read", there.all)
    assert command.main(["-n", "ai", "train"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert NOT_SEEN not in told
    assert "is not offered, for there is no ClusterPolicy on node gpu-0" in told
    assert command.main(["-n", "ai"]) == 0
    last = "not looked at: workloads of namespace ai, which must be named. It has train\n"
    assert capsys.readouterr().out.endswith(last)


def test_all_workloads_of_the_same_name_are_told_and_one_can_be_named_with_its_kind(look: Look) -> None:
    kind, submitter = make.job()
    submitter["metadata"] |= {"uid": "submitter", "ownerReferences": make.owned_by("other")}
    alike = ((kind, submitter), make.pytorch_job())
    _, out, _ = look(*alike)
    assert "job/train: Pending" in out.split(" pytorchjob/train: Pending")[0]
    _, out, _ = look(*alike, ask="-n ai pytorchjob/train")
    assert out.startswith("pytorchjob/train: Pending")
    assert " job/train" not in out
    code, _, errors = look(*alike, ask="-n ai rayjob/train")
    assert (code, errors) == (1, "error: namespace ai has no workload rayjob/train; it has job/train, pytorchjob/train")


def test_a_workload_that_another_of_its_name_has_made_is_told_with_it(look: Look) -> None:
    kind, made = make.job()
    made["metadata"] |= {"uid": "made", "ownerReferences": make.owned_by("job-train")}
    _, out, _ = look((kind, made), make.pytorch_job())
    assert out.startswith("train: ")
