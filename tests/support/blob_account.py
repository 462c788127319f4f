"""A simulated Azure with Azurite: the account `models` with two containers."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from azure.core.credentials import TokenCredential
from azure.storage.blob import ContainerClient

from simulator.azure import trust
from simulator.azure.blobs.policy import Policy
from simulator.azure.blobs.service import BlobService
from simulator.azure.gateway import Gateway
from simulator.azure.server import Server
from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, TOKEN, Arm, FakeBackend, ca_file, client_of, cluster_body

ACCOUNT = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/models"
CONTAINER = f"{ACCOUNT}/blobServices/default/containers/data"
OTHER = f"{ACCOUNT}/blobServices/default/containers/other"
CONTRIBUTOR = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"
READER = "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"
IDENTITY = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/aks-ai"
CREDENTIAL = f"{IDENTITY}/federatedIdentityCredentials/blobs"


def account_body(**properties: Any) -> dict[str, Any]:
    return {"location": "eastus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}, "properties": properties}


@dataclass
class BlobAccount:
    arm: Arm
    blobs: BlobService
    gateway: Gateway
    _clients: list[ContainerClient] = field(default_factory=list)
    """A client closed by the garbage collector warns in another test."""

    @property
    def url(self) -> str:
        return f"{self.blobs.endpoint}/models"

    def container(self, credential: str | TokenCredential | None) -> ContainerClient:
        """The client does not retry."""
        verify = str(self.blobs.ca_file)
        self._clients.append(ContainerClient(self.url, "data", credential, connection_verify=verify, retry_total=0))
        return self._clients[-1]

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def service_sas(self, permissions: str = "rl", *, hours: float = 1, container: str = "data") -> str:
        """Returns a SAS, expired if `hours` is negative."""
        expiry = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours)
        body = {
            "canonicalizedResource": f"/blob/models/{container}",
            "signedResource": "c",
            "signedPermission": permissions,
            "signedProtocol": "https",
            "signedExpiry": expiry.isoformat(),
        }
        answer = self.arm.call("POST", f"{ACCOUNT}/listServiceSas", body)
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["serviceSasToken"]
        return token

    def assign(self, role: str, scope: str, principal: str = SUBSCRIPTION.object_id, number: int = 1) -> str:
        return self.arm.assign(role, scope, principal, f"{number:032}")

    def identity(self) -> dict[str, str]:
        answer = self.arm.put(IDENTITY, {"location": "eastus"})
        assert answer.status_code in (200, 201), answer.text
        ids: dict[str, str] = answer.json()["properties"]
        return ids

    def issuer(self) -> str:
        assert self.arm.put(CLUSTER, cluster_body(oidcIssuerProfile={"enabled": True})).status_code in (200, 201)
        self.arm.done()
        url: str = self.arm.get(CLUSTER)["properties"]["oidcIssuerProfile"]["issuerURL"]
        return url

    def federate(self, **properties: Any) -> None:
        answer = self.arm.put(CREDENTIAL, {"properties": properties})
        assert answer.status_code in (200, 201), answer.text

    def settings(self, **properties: Any) -> None:
        assert self.arm.put(ACCOUNT, account_body(**properties)).status_code == 200
        self.arm.done()


@contextmanager
def blob_account(home: Path) -> Iterator[BlobAccount]:
    """Sets the environment variables of a program inside the simulator."""
    with mock.patch.dict(os.environ, {"SIMULATOR_HOME": str(home)}):
        blobs = BlobService()
        server = Server(0, TOKEN, SUBSCRIPTION, FakeBackend(), blobs, home / "azure")
        gateway = Gateway(0, server.world, server.port)
        blobs.open(Policy(server.world, server.tokens, gateway.destination).refusal)
        server.start()
        client = client_of(server.endpoint, home, timeout=60)
        arm = Arm(server, FakeBackend(), None, client, ca_file(home))  # type: ignore[arg-type]
        identity = {
            "IDENTITY_ENDPOINT": f"{server.endpoint}/identity/token",
            "IDENTITY_HEADER": TOKEN,
            "REQUESTS_CA_BUNDLE": str(trust.bundle()),
        }
        try:
            assert arm.put(GROUP, {"location": "eastus"}).status_code == 201
            assert arm.put(ACCOUNT, account_body()).status_code == 202
            arm.done()
            for path in (CONTAINER, OTHER):
                assert arm.put(path, {"properties": {}}).status_code == 201
            with mock.patch.dict(os.environ, identity), closing(BlobAccount(arm, blobs, gateway)) as account:
                yield account
        finally:
            client.close()
            server.stop()
            server.operations.wait(20)
            gateway.stop()
            blobs.stop()
