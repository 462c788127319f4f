from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from azure.core.exceptions import HttpResponseError
from azure.identity import DefaultAzureCredential
from azure.storage.blob import ContainerClient

from simulator.azure import domains
from tests.support import networks as net
from tests.support.blob_account import ACCOUNT, CONTRIBUTOR, BlobAccount, blob_account

ZONE = net.zone("privatelink.blob.core.windows.net")
NAME = "models.blob.core.windows.net"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlobAccount]:
    with blob_account(tmp_path_factory.mktemp("private")) as made:
        made.settings(publicNetworkAccess="Disabled")
        net.make_network(made.arm)
        net.make(made.arm, net.NETWORK.replace("/ai", "/other"), net.network_body("10.32.0.0/16"))
        net.make_endpoint(made.arm, "blob", ACCOUNT, "blob", ZONE)
        made.assign(CONTRIBUTOR, ACCOUNT)
        yield made


def listed(account: BlobAccount, credential: object, network: str) -> list[str]:
    """Returns blobs' names, as seen from a network or outside. Does not retry."""
    client = ContainerClient(
        f"https://{NAME}",
        "data",
        credential,  # type: ignore[arg-type]
        connection_verify=str(account.blobs.ca_file),
        proxies={"https": domains.proxy(account.gateway.port, network)},
        retry_total=0,
    )
    with closing(client):
        return [blob.name for blob in client.list_blobs()]


def test_a_private_account_shows_the_endpoints_of_azure(account: BlobAccount) -> None:
    shown = account.arm.get(ACCOUNT)["properties"]["primaryEndpoints"]
    assert shown == {"blob": f"https://{NAME}/", "dfs": "https://models.dfs.core.windows.net/"}


@pytest.mark.parametrize("kind", ["sas", "login", "key"])
def test_accepts_all_credentials_inside_the_network(account: BlobAccount, kind: str) -> None:
    """Keys sign the path, so signatures depend on the host name."""
    keys = account.arm.call("POST", f"{ACCOUNT}/listKeys").json()["keys"]
    key = {"account_name": "models", "account_key": keys[0]["value"]}
    credentials = {"sas": account.service_sas("rl"), "login": DefaultAzureCredential(), "key": key}
    assert listed(account, credentials[kind], "rg+ai") == []


@pytest.mark.parametrize("network", ["", "rg+other"])
def test_rejects_requests_from_elsewhere(account: BlobAccount, network: str) -> None:
    with pytest.raises(HttpResponseError) as refused:
        listed(account, account.service_sas("rl"), network)
    assert refused.value.status_code == 403
    assert "ErrorCode:AuthorizationFailure" in refused.value.message


def test_rejects_requests_to_the_simulators_address(account: BlobAccount) -> None:
    with pytest.raises(HttpResponseError) as refused:
        list(account.container(account.service_sas("rl")).list_blobs())
    assert refused.value.status_code == 403
