"""The blob service of all storage accounts (azure's BlobBackend)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobServiceClient, LinearRetry

from simulator.azure.blobs.azurite import Azurite
from simulator.azure.blobs.changes import Changes
from simulator.azure.blobs.front import Front, Rule
from simulator.host import ports

PORT = "blob"
_PATIENCE = 30


class BlobService:
    """Containers are made and removed at Azurite itself, with the account's key; users come through the front."""

    def __init__(self) -> None:
        self.azurite, self.changes = Azurite(), Changes()
        self._front: Front | None = None

    def open(self, rule: Rule) -> None:
        """Lets users in, by this rule. Raises ports.PortTaken."""
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
        with self._client(account) as client:
            try:
                client.create_container(container)
            except ResourceExistsError:
                return

    def delete_container(self, account: str, container: str) -> None:
        with self._client(account) as client:
            try:
                client.delete_container(container)
            except ResourceNotFoundError:
                return
        self.changes.tell(f"/{account}/{container}", "")

    def clear(self, account: str) -> None:
        with self._client(account) as client:
            for container in client.list_containers():
                client.delete_container(container.name)
                self.changes.tell(f"/{account}/{container.name}", "")

    def stop(self) -> None:
        if self._front is not None:
            self._front.stop()
        self.azurite.stop()

    @contextmanager
    def _client(self, account: str) -> Iterator[BlobServiceClient]:
        credential = {"account_name": account, "account_key": self.azurite.key(account)}
        url, trusted = f"{self.azurite.url}/{account}", str(self.ca_file)
        # While it starts again: as many times, a second apart.
        patience = LinearRetry(1, _PATIENCE, random_jitter_range=0, retry_connect=_PATIENCE)
        with BlobServiceClient(url, credential, connection_verify=trusted, retry_policy=patience) as client:
            yield client
