"""The blob service of all storage accounts, which implements `BlobBackend`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError, ServiceRequestError, ServiceResponseError
from azure.storage.blob import BlobServiceClient

from simulator.azure.blobs.azurite import Azurite
from simulator.azure.blobs.changes import Changes
from simulator.azure.blobs.front import Front, Rule
from simulator.host import ports

PORT = "blob"
_RETRY_S = 30
_PAUSE_S = 0.5


class BlobService:
    """Manages Azurite's containers with the account's key. Users connect to `Front`."""

    def __init__(self) -> None:
        self.azurite, self.changes = Azurite(), Changes()
        self._front: Front | None = None

    def open(self, rule: Rule) -> None:
        """Starts the server for users with this rule. Raises ports.PortTaken."""
        port = ports.require_free(PORT)
        self._front = Front(port, lambda: self.azurite.port, self.azurite.authority, rule, self.changes)

    @property
    def endpoint(self) -> str:
        return f"https://127.0.0.1:{ports.port(PORT)}"

    @property
    def ca_file(self) -> Path:
        return self.azurite.ca_file

    def set_accounts(self, accounts: Callable[[], Mapping[str, list[str]]]) -> None:
        self.azurite.set_accounts(accounts)

    def create_container(self, account: str, container: str) -> None:
        def create(client: BlobServiceClient) -> None:
            with contextlib.suppress(ResourceExistsError):
                client.create_container(container)

        self._do(account, create)

    def delete_container(self, account: str, container: str) -> None:
        def delete(client: BlobServiceClient) -> None:
            with contextlib.suppress(ResourceNotFoundError):
                client.delete_container(container)

        self._do(account, delete)
        self.changes.record(f"/{account}/{container}", "")

    def clear(self, account: str) -> None:
        def clear(client: BlobServiceClient) -> None:
            for container in client.list_containers():
                client.delete_container(container.name)
                self.changes.record(f"/{account}/{container.name}", "")

        self._do(account, clear)

    def stop(self) -> None:
        if self._front is not None:
            self._front.stop()
        self.azurite.stop()

    def _do(self, account: str, work: Callable[[BlobServiceClient], None]) -> None:
        """Runs `work`. Retries if a change of accounts restarts Azurite (on another port)."""
        deadline = time.monotonic() + _RETRY_S
        while True:
            key = self.azurite.key(account)  # waits while Azurite starts
            try:
                with self._client(account, key) as client:
                    return work(client)
            except (ServiceRequestError, ServiceResponseError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)

    def _client(self, account: str, key: str) -> BlobServiceClient:
        credential = {"account_name": account, "account_key": key}
        url, trusted = f"{self.azurite.url}/{account}", str(self.ca_file)
        return BlobServiceClient(url, credential, connection_verify=trusted, retry_total=0)
