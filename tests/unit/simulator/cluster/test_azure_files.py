"""What the driver's controller makes of a class: in which account a share is, where nodes find it, what it refuses."""

from __future__ import annotations

import pytest

from components.storage.shared_files import storage_class
from simulator.cluster.azure_files import AzureFiles, NotMadeError

OURS: dict[str, str] = storage_class("files1", "ai")["parameters"]
"""Of the class that the program makes."""


def test_a_share_by_nfs_is_in_the_account_of_its_class_at_its_private_endpoint() -> None:
    asked: list[tuple[str, str, bool]] = []

    def refusal(group: str, account: str, nfs: bool) -> None:
        asked.append((group, account, nfs))

    made = AzureFiles(refusal).source(OURS, "pvc-1234", "ai")
    assert asked == [("ai", "files1", True)]
    assert made["volumeHandle"] == "ai#files1#pvcn-1234###ai"
    assert made["volumeAttributes"]["server"] == "files1.privatelink.file.core.windows.net"


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({key.upper(): value for key, value in OURS.items()}, "code = Internal desc = AuthorizationFailed"),
        (
            OURS | {"skuName": "Standard_LRS"},
            "InvalidArgument desc = nfs protocol only supports premium storage, current account type: Standard_LRS",
        ),
        ({"protocol": "nfs"}, "in accounts that a class names alone"),
        ({"networkEndpointType": "privateEndpoint"}, "in accounts that a class names alone"),
    ],
    ids=["names have no case", "nfs is premium alone", "nfs without an account", "an account in a network"],
)
def test_what_cannot_be_made_is_refused_in_the_drivers_words(parameters: dict[str, str], words: str) -> None:
    with pytest.raises(NotMadeError, match=words):
        AzureFiles(lambda _group, _account, _nfs: "AuthorizationFailed").source(parameters, "pvc-1234", "ai")


def test_by_smb_the_account_is_one_of_akss() -> None:
    made = AzureFiles(lambda _group, _account, _nfs: "not asked").source({"skuName": "Standard_LRS"}, "pvc-1", "ai")
    assert made["volumeAttributes"] == {"skuName": "Standard_LRS"}
