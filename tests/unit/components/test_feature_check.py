"""AKSInfinibandSupport is looked up before any InfiniBand pool is made."""

from __future__ import annotations

import pulumi
import pytest

from components.preflight.features import check_infiniband, refusal
from config.data.skus import sku
from config.schema.pools import PoolSettings
from tests.support.case_files import case_table
from tests.support.mocked_azure import Azure, EngineError
from tests.support.mocks import deploy

H100, T4 = "Standard_ND96isr_H100_v5", "Standard_NC4as_T4_v3"
REGISTER = "az feature register --namespace Microsoft.ContainerService --name AKSInfinibandSupport"
UNREGISTER = "az feature unregister --namespace Microsoft.ContainerService --name AKSInfinibandSupport"
PROPAGATE = "az provider register --namespace Microsoft.ContainerService"


@case_table(__file__, "fabrics", register=REGISTER, unregister=UNREGISTER, propagate=PROPAGATE)
def test_pools_must_be_on_one_fabric(size: str, state: str, says: str, commands: list[str]) -> None:
    why = refusal({"gpu": sku(size), "t4": sku(T4)}, state)
    assert (why is None) is (says == "")
    text = why or ""
    assert says in text
    assert f"gpu ({size})" in text or not says
    assert "t4 (" not in text
    assert [line.strip() for line in text.splitlines() if line.strip() in (REGISTER, UNREGISTER, PROPAGATE)] == commands


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
