"""A storage account without public access: who reaches its blobs, by Azure's own client, and what others are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from azure.core.exceptions import HttpResponseError, ServiceRequestError
from azure.identity import DefaultAzureCredential
from azure.storage.blob import ContainerClient

from simulator.azure import domains
from tests.support import networks as net
from tests.support.blob_account import ACCOUNT, CONTRIBUTOR, BlobAccount, blob_account

ZONE = net.zone("privatelink.blob.core.windows.net")
NAME = "models.blob.core.windows.net"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlobAccount]:
    """With a private endpoint in the network `ai`, whose zone is linked there."""
    with blob_account(tmp_path_factory.mktemp("private")) as made:
        made.settings(publicNetworkAccess="Disabled")
        net.make_network(made.arm)
        net.make(made.arm, net.NETWORK.replace("/ai", "/other"), net.network_body("10.32.0.0/16"))
        net.make_endpoint(made.arm, "blob", ACCOUNT, "blob", ZONE)
        made.assign(CONTRIBUTOR, ACCOUNT)
        yield made


def listed(account: BlobAccount, credential: object, *, network: str = "", host: str = NAME) -> list[str]:
    """Names of blobs, as a machine in that network sees them, or one outside. Gives up at once."""
    client = ContainerClient(
        f"https://{host}",
        "data",
        credential,  # type: ignore[arg-type]
        connection_verify=str(account.blobs.ca_file),
        proxies={"https": domains.proxy(account.gateway.port, network)},
        retry_total=0,
    )
    with closing(client):
        return [blob.name for blob in client.list_blobs()]


def test_its_endpoints_are_named_as_on_azure(account: BlobAccount) -> None:
    shown = account.arm.get(ACCOUNT)["properties"]["primaryEndpoints"]
    assert shown == {"blob": f"https://{NAME}/", "dfs": "https://models.dfs.core.windows.net/"}


@pytest.mark.parametrize("way", ["sas", "login", "key"])
def test_inside_it_is_an_account_like_others(account: BlobAccount, way: str) -> None:
    """Signatures hold for its own name: those of keys have the path in them."""
    keys = account.arm.call("POST", f"{ACCOUNT}/listKeys").json()["keys"]
    key = {"account_name": "models", "account_key": keys[0]["value"]}
    ways = {"sas": account.service_sas("rl"), "login": DefaultAzureCredential(), "key": key}
    assert listed(account, ways[way], network="rg+ai") == []


@pytest.mark.parametrize("network", ["", "rg+other"])
def test_elsewhere_it_lets_nobody_in(account: BlobAccount, network: str) -> None:
    with pytest.raises(HttpResponseError) as refused:
        listed(account, account.service_sas("rl"), network=network)
    assert refused.value.status_code == 403
    assert "ErrorCode:AuthorizationFailure" in refused.value.message


def test_nor_does_it_by_the_simulators_own_address(account: BlobAccount) -> None:
    with pytest.raises(HttpResponseError) as refused:
        list(account.container(account.service_sas("rl")).list_blobs())
    assert refused.value.status_code == 403


def test_a_name_that_nothing_has_is_not_found(account: BlobAccount) -> None:
    with pytest.raises(ServiceRequestError, match="no such host"):
        listed(account, account.service_sas("rl"), network="rg+ai", host="gone.blob.core.windows.net")
