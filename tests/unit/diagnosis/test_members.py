"""A team's members may read one namespace and no nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from diagnosis import __main__ as command
from diagnosis import kubectl
from diagnosis.cluster import EVENT, JOB, POD, PYTORCH_JOB, QUEUED, Kind
from k8s.objects import Object
from tests.unit.diagnosis import objects as make

NOT_SEEN = "not checked: nodes and other namespaces."
Look = Callable[..., tuple[int, str, str]]


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Look:
    def run(*objects: tuple[Kind, Object], ask: str = "-n ai train") -> tuple[int, str, str]:
        def read(kind: Kind, namespace: str) -> list[Object]:
            if namespace != "ai" or kind not in (EVENT, JOB, POD, PYTORCH_JOB, QUEUED):
                raise kubectl.Forbidden(f"cannot list resource {kind.plural}\n{kubectl.hint('(Forbidden)')}")
            return make.cluster(*objects).all(kind, namespace)

        monkeypatch.setattr(kubectl, "read", read)
        code = command.main(ask.split())
        printed = capsys.readouterr()
        return code, " ".join(printed.out.split()), " ".join(printed.err.split())

    return run


def test_shows_kueues_reason(look: Look) -> None:
    code, out, _ = look(make.job(suspend=True), make.queued("default-queue", "insufficient quota for nvidia.com/gpu"))
    assert code == 0
    assert "it has no quota in its queue default-queue: insufficient quota for nvidia.com/gpu" in out
    assert NOT_SEEN in out


def test_shows_the_schedulers_message_and_nothing_on_unknown_nodes(look: Look) -> None:
    message = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    _, out, _ = look(make.job(), make.worker("train-0", unschedulable=message), make.node("gpu-0", gpu=8, nics=8))
    assert f"the scheduler reports: {message}" in out
    assert "no node" not in out
    assert "does not run" not in out


def test_an_unreadable_node_is_not_a_lost_node(look: Look) -> None:
    pulls = make.waiting("ErrImagePull", 'failed to resolve "ai.azurecr.io/own:1": not found', "ai.azurecr.io/own:1")
    _, out, _ = look(make.job(), make.pod("train-0", owner="train", on="gpu-0", **pulls))
    assert "its registry does not have the image ai.azurecr.io/own:1" in out
    assert "deleted" not in out


@pytest.mark.parametrize("ask", ["-n ai", "-n red train"])
def test_members_may_not_diagnose_the_platform_or_other_teams(look: Look, ask: str) -> None:
    code, out, errors = look(make.job(), ask=ask)
    assert (code, out) == (1, "")
    assert "As a member of a team, name a workload: python -m diagnosis -n <namespace> <workload>" in errors


def test_administrators_get_reports_on_nodes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = make.cluster(make.job(), make.worker("train-0", unschedulable="0/1 nodes"), make.node("gpu-0"))
    monkeypatch.setattr(kubectl, "read", there.all)
    assert command.main(["-n", "ai", "train"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert NOT_SEEN not in printed
    assert "is not offered: the cluster has no ClusterPolicy on node gpu-0" in printed
    assert command.main(["-n", "ai"]) == 0
    last = "not checked: workloads in namespace ai. To check them, add their names: train\n"
    assert capsys.readouterr().out.endswith(last)


def test_reports_all_workloads_of_a_name_or_one_with_its_kind(look: Look) -> None:
    kind, submitter = make.job()
    submitter["metadata"] |= {"uid": "submitter", "ownerReferences": make.owned_by("other")}
    alike = ((kind, submitter), make.pytorch_job())
    _, out, _ = look(*alike)
    assert "job/train: Pending" in out.split(" pytorchjob/train: Pending")[0]
    _, out, _ = look(*alike, ask="-n ai pytorchjob/train")
    assert out.startswith("pytorchjob/train: Pending")
    assert " job/train" not in out
    code, _, errors = look(*alike, ask="-n ai rayjob/train")
    assert (code, errors) == (
        1,
        "error: namespace ai has no workload rayjob/train; its workloads: job/train, pytorchjob/train",
    )


def test_a_workload_is_part_of_its_owner_of_the_same_name(look: Look) -> None:
    kind, child = make.job()
    child["metadata"] |= {"uid": "child", "ownerReferences": make.owned_by("job-train")}
    _, out, _ = look((kind, child), make.pytorch_job())
    assert out.startswith("train: ")
