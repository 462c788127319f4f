"""What the driver's controller makes of a class: in which account a share is, where nodes find it, what it refuses."""

from __future__ import annotations

import pytest

from components.shared_files import storage_class
from simulator.cluster.azure_files import AzureFiles, NotMadeError

OURS: dict[str, str] = storage_class("files1", "ai")["parameters"]
"""Of the class that the program makes."""


def refused(parameters: dict[str, str], why: str | None = None) -> str:
    with pytest.raises(NotMadeError) as error:
        AzureFiles(lambda _group, _account, _nfs: why).source(parameters, "pvc-1234", "ai")
    return str(error.value)


def test_a_share_by_nfs_is_in_the_account_of_its_class_at_its_private_endpoint() -> None:
    asked: list[tuple[str, str, bool]] = []

    def refusal(group: str, account: str, nfs: bool) -> None:
        asked.append((group, account, nfs))

    made = AzureFiles(refusal).source(OURS, "pvc-1234", "ai")
    assert asked == [("ai", "files1", True)]
    assert made["volumeHandle"] == "ai#files1#pvcn-1234###ai"
    assert made["volumeAttributes"]["server"] == "files1.privatelink.file.core.windows.net"


def test_names_of_parameters_have_no_case() -> None:
    shouted = {key.upper(): value for key, value in OURS.items()}
    assert refused(shouted, "AuthorizationFailed") == "rpc error: code = Internal desc = AuthorizationFailed"


def test_nfs_is_premium_alone() -> None:
    assert refused(OURS | {"skuName": "Standard_LRS"}) == (
        "rpc error: code = InvalidArgument desc = nfs protocol only supports premium storage, current account type: "
        "Standard_LRS"
    )


@pytest.mark.parametrize("parameters", [{"protocol": "nfs"}, {"networkEndpointType": "privateEndpoint"}])
def test_accounts_in_networks_are_not_the_drivers_to_make_here(parameters: dict[str, str]) -> None:
    assert "in accounts that a class names alone" in refused(parameters)


def test_by_smb_the_account_is_one_of_akss() -> None:
    made = AzureFiles(lambda _group, _account, _nfs: "not asked").source({"skuName": "Standard_LRS"}, "pvc-1", "ai")
    assert made["volumeAttributes"] == {"skuName": "Standard_LRS"}
