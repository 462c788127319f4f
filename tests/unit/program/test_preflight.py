from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.preflight import arm as reader
from tests.support import arm, mocked_azure
from tests.support.mocked_azure import Azure
from tests.support.mocks import program
from tests.support.sizes import H100

FETCH = reader.fetch
ND = "standardNDSH100v5Family"
KEYS = {"vmSku": H100, "nodeCount": "2"}
Start = Callable[..., Azure]


@pytest.fixture
def azure_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    started: list[arm.Arm] = []

    def start(**values: Any) -> Azure:
        limited = arm.SUBSCRIPTION.model_copy(update={"subscription_id": mocked_azure.SUBSCRIPTION, **values})
        started.append(arm.start(tmp_path / str(len(started)), arm.FakeBackend(), limited))
        monkeypatch.setenv("ARM_METADATA_HOSTNAME", started[-1].server.endpoint)
        monkeypatch.setenv("SSL_CERT_FILE", started[-1].ca_file)
        monkeypatch.setattr(reader, "_trusted", ssl.create_default_context)  # a program caches it
        return Azure(fetch=FETCH)

    yield start
    for each in started:
        each.stop()


def test_accepts_the_simulators_subscription(azure_with: Start) -> None:
    assert program(KEYS, azure_with()).names(":AgentPool") == ["pool-gpu"]


LIMITED = {
    "quota": {**arm.SUBSCRIPTION.quota, "cores": 215},
    "providers": {**arm.SUBSCRIPTION.providers, "Microsoft.Network": "NotRegistered"},
    "rights": [{"actions": ["*"], "notActions": ["Microsoft.Authorization/*/Write"]}],
}


@pytest.mark.parametrize(
    ("values", "keys", "parts"),
    [
        (
            LIMITED,
            {"nodeCount": "11"},
            [
                f"1056 vCPUs of quota {ND} are needed in eastus (pool gpu: 11 nodes of {H100}), and 960 of 960",
                "vCPUs of quota cores are needed in eastus",
                "az provider register --namespace Microsoft.Network --wait",
                "az role assignment create --role 'User Access Administrator' --assignee 0000",
            ],
        ),
        ({}, {"location": "westeurope"}, [f"{H100} (pool gpu) is not offered in westeurope"]),
        (
            {},
            {"location": "northeurope", "vmSku": "Standard_NC40ads_H100_v5"},
            ["is not available to this subscription in northeurope: NotAvailableForSubscription"],
        ),
    ],
    ids=["quota, provider and rights", "not offered", "restricted"],
)
def test_rejects_each_problem_with_its_fix(
    values: dict[str, Any], keys: dict[str, str], parts: list[str], azure_with: Start
) -> None:
    with pytest.raises(pulumi.RunError) as why:
        program({**KEYS, **keys}, azure := azure_with(**values))
    assert not [token for token, _ in azure.calls if ":list" in token], "no resource has been declared"
    for each in parts:
        assert each in str(why.value)
    assert str(why.value).endswith("Nothing was changed. Do this, and then `pulumi up` again.")


def test_a_consumer_stack_needs_no_lookup(azure_with: Start) -> None:
    shared_platform = program({**KEYS, "workloads": "nccl-allreduce"}, stack="dev")
    azure = azure_with(rights=[], quota={})
    azure.stacks = {"dev": shared_platform}
    program({"platformStack": "dev", "workloads": "nccl-allreduce"}, azure, "jobs")
    assert not [token for token, _ in azure.calls if "getClientToken" in token]
