"""AKSInfinibandSupport is looked up before any InfiniBand pool is made."""

from __future__ import annotations

import pulumi
import pytest

from components.feature_check import check_infiniband, refusal
from config.facts.skus import sku
from config.schema.pools import PoolSettings
from tests.support.mocked_azure import Azure, EngineError
from tests.support.mocks import deploy

H100, GB300, T4 = "Standard_ND96isr_H100_v5", "Standard_ND128isr_GB300_v6", "Standard_NC4as_T4_v3"
REGISTER = "az feature register --namespace Microsoft.ContainerService --name AKSInfinibandSupport"
UNREGISTER = "az feature unregister --namespace Microsoft.ContainerService --name AKSInfinibandSupport"
PROPAGATE = "az provider register --namespace Microsoft.ContainerService"


@pytest.mark.parametrize(("size", "state"), [(H100, "Registered"), (GB300, "NotRegistered"), (T4, "NotRegistered")])
def test_pools_that_will_be_on_one_fabric_may_be_made(size: str, state: str) -> None:
    assert refusal({"gpu": sku(size)}, state) is None


@pytest.mark.parametrize("state", ["NotRegistered", "Unregistered", "Pending", "Unregistering"])
def test_without_the_feature_the_message_has_the_commands(state: str) -> None:
    why = refusal({"gpu": sku(H100), "t4": sku(T4)}, state)
    assert why is not None
    assert f"gpu ({H100})" in why
    assert "t4" not in why
    assert f"is {state}" in why
    assert why.index(REGISTER) < why.index(PROPAGATE)


def test_while_it_is_being_registered_there_is_only_waiting_left() -> None:
    why = refusal({"gpu": sku(H100)}, "Registering")
    assert why is not None
    assert REGISTER not in why
    assert PROPAGATE in why


def test_grace_blackwell_needs_it_gone() -> None:
    why = refusal({"gpu": sku(GB300)}, "Registered")
    assert why is not None
    assert "must not be registered" in why
    assert UNREGISTER in why


def check(size: str, state: str) -> Azure:
    azure = Azure(feature=state)
    deploy(lambda: check_infiniband({"gpu": PoolSettings(vm_sku=size)}), azure)
    return azure


def test_it_is_read_from_the_subscription() -> None:
    azure = check(H100, "Registered")
    arguments = {"featureName": "AKSInfinibandSupport", "providerNamespace": "Microsoft.ContainerService"}
    assert azure.calls == [("azure-native:features:getSubscriptionFeatureRegistration", arguments)]
    with pytest.raises(pulumi.RunError, match="AKSInfinibandSupport must be registered"):
        check(H100, "NotRegistered")


def test_a_cloud_without_the_feature_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> object:
        raise EngineError('Code="FeatureNotFound" Message="The feature \'AKSInfinibandSupport\' could not be found."')

    monkeypatch.setattr(Azure, "call", refuse)
    with pytest.raises(pulumi.RunError, match="FeatureNotFound.*\n.*Azure Government"):
        check(H100, "")


def test_without_infiniband_nobody_asks() -> None:
    assert check(T4, "NotRegistered").calls == []
