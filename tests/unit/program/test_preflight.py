"""Each refusal of the preflight: the whole program, and a simulated subscription that lacks something."""

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
Lacking = Callable[..., Azure]


@pytest.fixture
def lacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lacking]:
    """A subscription with other values than the simulator's own, over HTTPS."""
    started: list[arm.Arm] = []

    def start(**values: Any) -> Azure:
        poor = arm.SUBSCRIPTION.model_copy(update={"subscription_id": mocked_azure.SUBSCRIPTION, **values})
        started.append(arm.start(tmp_path / str(len(started)), arm.FakeBackend(), poor))
        monkeypatch.setenv("ARM_METADATA_HOSTNAME", started[-1].server.endpoint)
        monkeypatch.setenv("SSL_CERT_FILE", started[-1].ca_file)
        monkeypatch.setattr(reader, "_trusted", ssl.create_default_context)  # a program trusts the same all its life
        return Azure(fetch=FETCH)

    yield start
    for each in started:
        each.stop()


def test_the_simulators_own_subscription_lacks_nothing(lacking: Lacking) -> None:
    assert program(KEYS, lacking()).names(":AgentPool") == ["pool-gpu"]


POOR = {
    "quota": {**arm.SUBSCRIPTION.quota, "cores": 215},
    "providers": {**arm.SUBSCRIPTION.providers, "Microsoft.Network": "NotRegistered"},
    "rights": [{"actions": ["*"], "notActions": ["Microsoft.Authorization/*/Write"]}],
}


@pytest.mark.parametrize(
    ("values", "keys", "said"),
    [
        (
            POOR,
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
            ["is closed to this subscription in northeurope: NotAvailableForSubscription"],
        ),
    ],
    ids=["quota, provider and rights", "not offered", "restricted"],
)
def test_each_is_refused_with_its_way_out(
    values: dict[str, Any], keys: dict[str, str], said: list[str], lacking: Lacking
) -> None:
    with pytest.raises(pulumi.RunError) as why:
        program({**KEYS, **keys}, azure := lacking(**values))
    assert not [token for token, _ in azure.calls if ":list" in token], "nothing has been declared"
    for each in said:
        assert each in str(why.value)
    assert str(why.value).endswith("Nothing was changed. Do this, and then `pulumi up` again.")


def test_stacks_on_the_platform_of_another_ask_for_nothing(lacking: Lacking) -> None:
    shared_platform = program({**KEYS, "workloads": "nccl-allreduce"}, stack="dev")
    azure = lacking(rights=[], quota={})
    azure.stacks = {"dev": shared_platform}
    program({"platformStack": "dev", "workloads": "nccl-allreduce"}, azure, "jobs")
    assert not [token for token, _ in azure.calls if "getClientToken" in token]
