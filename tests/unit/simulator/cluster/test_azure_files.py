from __future__ import annotations

import pytest

from components.storage.shared_files import storage_class
from simulator.cluster.azure_files import AzureFiles, NotMadeError

OURS: dict[str, str] = storage_class("files1", "ai")["parameters"]


def test_an_nfs_share_is_in_the_account_of_its_class() -> None:
    requests: list[tuple[str, str, bool]] = []

    def refusal(group: str, account: str, nfs: bool) -> None:
        requests.append((group, account, nfs))

    made = AzureFiles(refusal).source(OURS, "pvc-1234", "ai")
    assert requests == [("ai", "files1", True)]
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
        ({"protocol": "nfs"}, "needs storageAccount in the class"),
        ({"networkEndpointType": "privateEndpoint"}, "needs storageAccount in the class"),
    ],
    ids=["names have no case", "nfs needs premium", "nfs without an account", "an account in a network"],
)
def test_rejects_invalid_parameters_with_the_drivers_error(parameters: dict[str, str], words: str) -> None:
    with pytest.raises(NotMadeError, match=words):
        AzureFiles(lambda _group, _account, _nfs: "AuthorizationFailed").source(parameters, "pvc-1234", "ai")


def test_an_smb_share_is_in_an_account_of_aks() -> None:
    made = AzureFiles(lambda _group, _account, _nfs: "not called").source({"skuName": "Standard_LRS"}, "pvc-1", "ai")
    assert made["volumeAttributes"] == {"skuName": "Standard_LRS"}
