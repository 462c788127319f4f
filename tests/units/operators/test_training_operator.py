"""The training operator: whose gangs it makes, and what of its release a stack has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import manifests
from config.facts.scheduling import COSCHEDULER, VOLCANO
from operators import training_operator
from operators.training_operator import arguments
from tests.support.mocks import Recorder, program
from tests.support.settings import H100

CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
RELEASE: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mlbatch-system"}},
    *(
        {**CRD, "metadata": {"name": name}, "spec": {}}
        for name in (*training_operator.OTHERS, "pytorchjobs.kubeflow.org")
    ),
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "manager", "namespace": "mlbatch-system"},
        "spec": {"template": {"spec": {"containers": [{"name": "manager", "image": "ghcr.io/kubeflow/manager:v1"}]}}},
    },
]
BOTH = {"kueue": {"enabled": True}, "trainingOperator": {"enabled": True}}
CHARTS = ("kueue", "node-feature-discovery", "gpu-operator", "network-operator", "volcano", "blob-csi-driver")


@pytest.fixture
def stack(tmp_path: Path) -> Callable[..., Recorder]:
    """A stack whose charts come from a folder."""
    for name in (*CHARTS, "scheduler-plugins"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Chart.yaml").touch()
    (tmp_path / training_operator.NAME).mkdir()
    (tmp_path / training_operator.NAME / "install.yaml").write_text(yaml.safe_dump_all(RELEASE))
    manifests.manifests.cache_clear()
    base = {"charts": {"source": str(tmp_path)}, "cluster": {"localAccounts": True}, "vmSku": H100, "nodeCount": 2}

    def made(images: Any = None, **operators: Any) -> Recorder:
        return program({**base, "images": images or {}, "operators": BOTH | operators})

    return made


def given(stack: Recorder) -> list[str]:
    (manager,) = stack.one(":Deployment", "manager").inputs["spec"]["template"]["spec"]["containers"]
    found: list[str] = manager["args"]
    return found


def test_it_runs_pytorchjobs_and_leaves_out_all_kinds_that_kueue_does_not_queue(
    stack: Callable[..., Recorder],
) -> None:
    found = stack()
    assert found.names(":CustomResourceDefinition") == ["pytorchjobs.kubeflow.org"]
    assert "--enable-scheme=pytorchjob" in given(found)
    assert "kubeflow.org/pytorchjob" in str(found.one(":Release", "kueue").inputs["values"])


def test_gangs_are_those_of_the_stacks_scheduler_which_comes_first(stack: Callable[..., Recorder]) -> None:
    """It ends where the cluster does not know their kind."""
    for scheduler, release in ((VOLCANO, "volcano"), (COSCHEDULER, "scheduler-plugins")):
        found = stack(scheduler=scheduler)
        assert f"--gang-scheduler-name={scheduler}" in given(found)
        after = " ".join(found.one(":Deployment", "manager").dependencies)
        assert f"Release {release}" in after
        assert "namespace-mlbatch-system" in after


def test_without_a_scheduler_of_gangs_pods_are_placed_one_by_one(stack: Callable[..., Recorder]) -> None:
    assert not [each for each in given(stack(volcano={"enabled": False})) if "gang" in each]


def test_kueue_comes_after_it_since_namespaces_of_teams_go_before_both(stack: Callable[..., Recorder]) -> None:
    after = " ".join(stack().one(":Release", "kueue").dependencies)
    assert "CustomResourceDefinition pytorchjobs.kubeflow.org" in after


def test_what_waits_for_the_master_comes_from_the_mirror_as_the_operator_does(
    stack: Callable[..., Recorder],
) -> None:
    found = stack({"registry": "mirror.example.com/all"})
    assert "--pytorch-init-container-image=mirror.example.com/all/library/alpine:3.10" in given(found)
    (manager,) = found.one(":Deployment", "manager").inputs["spec"]["template"]["spec"]["containers"]
    assert manager["image"] == "mirror.example.com/all/kubeflow/manager:v1"
    assert "--pytorch-init-container-image=docker.io/library/alpine:3.10" in arguments(None, None, 30)


def test_workers_wait_for_the_master_as_long_as_a_job_may_take_to_begin(stack: Callable[..., Recorder]) -> None:
    """Its node pulls gigabytes meanwhile; upstream's default is 200 seconds."""
    assert "--pytorch-init-container-max-tries=900" in given(stack())
    assert "--pytorch-init-container-max-tries=300" in given(stack(warmUpMinutes=10))


def test_a_stack_has_it_only_if_it_asks(stack: Callable[..., Recorder]) -> None:
    found = stack(trainingOperator={"enabled": False})
    assert found.names(":Deployment") == []
