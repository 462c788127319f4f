"""JupyterLab and the health check, declared by the whole program."""

from __future__ import annotations

import json

import pytest

from tests.support.mocked_azure import SECRET
from tests.support.mocks import Recorder, program

PASSWORD = "hunter2"
STACK = {
    "vmSku": "Standard_ND96isr_H100_v5",
    "cluster": {"localAccounts": True},
    "workloads": "jupyterlab,health-check",
    "workloadOptions": {"jupyterlab": {"password": PASSWORD, "gpus": 1}},
}


@pytest.fixture(scope="module")
def dev() -> Recorder:
    return program(STACK, secret=("workloadOptions",))


def test_the_password_reaches_nothing_but_as_a_secret_hash(dev: Recorder) -> None:
    assert dev.one(":Secret", "jupyterlab").inputs["stringData"] == SECRET
    for resource in dev.registered:
        assert PASSWORD not in json.dumps(resource.inputs, default=str)
        assert "argon2" not in json.dumps(resource.inputs, default=str)
    assert PASSWORD not in json.dumps(dev.outputs, default=str)


def test_the_share_is_named_after_its_namespace(dev: Recorder) -> None:
    assert dev.one(":StorageClass", "jupyterlab").inputs["metadata"]["name"] == "ai-jupyterlab"
    claim = dev.one(":PersistentVolumeClaimPatch", "jupyterlab").inputs
    assert claim["metadata"]["namespace"] == "ai"
    assert claim["spec"]["storageClassName"] == "ai-jupyterlab"


def test_nothing_waits_for_pods_that_wait_for_gpus(dev: Recorder) -> None:
    for kind, name in ((":Deployment", "jupyterlab"), (":Service", "jupyterlab"), (":Job", "health-check")):
        assert dev.one(kind, name).inputs["metadata"]["annotations"]["pulumi.com/skipAwait"] == "true"


def test_the_gang_is_there_before_its_job(dev: Recorder) -> None:
    assert dev.one(":PodGroup", "health-check").inputs["spec"]["minMember"] == 2
    assert (
        "kubernetes:scheduling.volcano.sh/v1beta1:PodGroup health-check" in dev.one(":Job", "health-check").dependencies
    )


def test_outputs_say_how_to_look(dev: Recorder) -> None:
    commands = dev.outputs["workloads"]
    assert commands["jupyterlab"].startswith(
        "kubectl port-forward -n ai service/jupyterlab 8888:8888    # 1 node of pool "
    )
    assert commands["health-check"].startswith("kubectl logs -n ai --selector ")


def test_images_are_the_pinned_one_and_one_of_docker(dev: Recorder) -> None:
    notebook = dev.one(":Deployment", "jupyterlab").inputs["spec"]["template"]["spec"]["containers"][0]["image"]
    check = dev.one(":Job", "health-check").inputs["spec"]["template"]["spec"]["containers"][0]["image"]
    assert notebook.startswith("quay.io/jupyter/pytorch-notebook:")
    assert ".azurecr.io/aksnhc:" in check
