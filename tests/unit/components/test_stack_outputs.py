from __future__ import annotations

import pulumi
import pytest

from components.stack_outputs import describe_container, describe_sas, read_container
from tests.support import golden
from tests.support.mocked_azure import SECRET
from tests.support.mocks import deploy
from tests.unit.components.test_storage import access

FOUNDATION = {"resourceGroup", "clusterName", "clusterId", "registry", "storage", "price"}
WORKLOADS = {"workloads", "files"}
PLATFORM = {*FOUNDATION, *WORKLOADS, "pools"}
PLATFORM_SECRETS = {"kubeconfig", "sas", "platform", "workloadDetails"}


@pytest.mark.parametrize(
    ("stack", "plain", "secret"),
    [
        ("entra", PLATFORM, PLATFORM_SECRETS),
        ("node-conditions", {*PLATFORM, "monitoring"}, PLATFORM_SECRETS),
        ("private-seed", {*PLATFORM, "next"}, PLATFORM_SECRETS),
        ("private-outside", {*FOUNDATION, "next"}, set()),
        ("nccl-allreduce", {"platformStack", "clusterId", *WORKLOADS}, {"kubeconfig", "workloadDetails"}),
        ("pytorch-pretraining", {"platformStack", "clusterId", *WORKLOADS}, {"kubeconfig", "workloadDetails"}),
    ],
)
def test_outputs_have_these_names_and_secrets(stack: str, plain: set[str], secret: set[str]) -> None:
    outputs = golden.run(stack).outputs
    assert {name for name, value in outputs.items() if value == SECRET} == secret
    assert outputs.keys() == plain | secret


def test_a_consumer_stack_reads_the_same_container() -> None:
    found: list[list[str]] = []

    def declare() -> None:
        given = access(key="input", hns=True, upload=True, permissions="racwdl", sizeGib=5)
        again = read_container(describe_container(given), pulumi.Output.all(**describe_sas(given)))
        assert again.settings == given.settings
        assert describe_container(again) == describe_container(given)
        assert again.sas is not None
        assert again.sas.upload is not None
        pulumi.Output.all(again.sas.mount, again.sas.upload).apply(found.append)

    deploy(declare)
    assert found == [["sp=rl&sig=abc", "sp=rcwl&sig=def"]]
