"""Reads and writes a batch in the output container by REST, with the stack's SAS or a login."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from azure.core.exceptions import AzureError, ClientAuthenticationError, ResourceExistsError, ResourceNotFoundError
from azure.identity import DefaultAzureCredential
from azure.storage.blob import ContainerClient

from workloads.resim.batch import Layout, Refused, digest
from workloads.resim.cli.platform import Container

_AT_ONCE = 16
_SAS_REJECTED = ("AuthenticationFailed", "AuthorizationFailure", "InvalidAuthenticationInfo")
"""Error codes for an expired SAS, the SAS of another account, and access from outside a private network."""


@dataclass
class Kept:
    done: set[str] = field(default_factory=set)
    attempts: dict[tuple[str, str], set[str]] = field(default_factory=dict)


class Store:
    """A batch's part of the container. Methods raise Refused for errors of the storage account."""

    def __init__(self, client: ContainerClient, container: Container, layout: Layout) -> None:
        self._client, self._container, self._layout = client, container, layout

    def identity(self) -> dict[str, Any] | None:
        text = self._read(self._layout.identity)
        found: dict[str, Any] | None = json.loads(text) if text is not None else None
        return found

    def scenarios(self) -> list[str]:
        """Returns all scenarios of the batch, which are those of its first run."""
        return self.run(1)

    def run(self, number: int) -> list[str]:
        return (self._read(self._layout.run(number)) or b"").decode().split()

    def last_run(self) -> int:
        with self._refusing():
            names = [blob.name for blob in self._client.list_blobs(f"{self._layout.root}/runs/")]
        numbers = [name.rpartition("/")[2].removesuffix(".txt") for name in names]
        return max((int(number) for number in numbers if number.isdigit()), default=0)

    def begin(self, scenarios: Sequence[str], template: str, made_of: str) -> None:
        about = {"digest": digest(scenarios), "scenarios": len(scenarios), "template": template, "madeOf": made_of}
        self._write(self._layout.identity, json.dumps({**about, "submitted": datetime.now(UTC).isoformat()}))

    def begin_run(self, number: int, scenarios: Iterable[str]) -> None:
        self._write(self._layout.run(number), "".join(f"{name}\n" for name in scenarios))

    def kept(self) -> Kept:
        found = Kept()
        with self._refusing():
            for blob in self._client.list_blobs(self._layout.results):
                scenario, _, file = blob.name.removeprefix(self._layout.results).partition("/")
                if file == "result.json":
                    found.done.add(scenario)
            for blob in self._client.list_blobs(self._layout.attempts):
                scenario, _, rest = blob.name.removeprefix(self._layout.attempts).partition("/")
                pod, _, file = rest.partition("/")
                if pod:
                    found.attempts.setdefault((scenario, pod), set()).add(file)
        return found

    def results(self, scenarios: Iterable[str]) -> Iterator[dict[str, Any]]:
        names = [f"{self._layout.results}{scenario}/result.json" for scenario in scenarios]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for text in pool.map(self._read, names):
                if text is not None:
                    with contextlib.suppress(ValueError):  # a malformed result does not hide the others
                        yield json.loads(text.decode(errors="replace"))

    def _read(self, name: str) -> bytes | None:
        with self._refusing():
            try:
                return self._client.download_blob(name).readall()
            except ResourceNotFoundError as error:
                if "BlobNotFound" in str(getattr(error, "error_code", "")):
                    return None
                raise

    def _write(self, name: str, text: str) -> None:
        with self._refusing():
            try:
                self._client.upload_blob(name, text.encode(), overwrite=False)
            except ResourceExistsError:
                what = f"another command has just written {name}"
                fix = f"python -m workloads.resim status {self._layout.batch}"
                raise Refused(what, "one submit of a batch at a time", fix) from None

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except AzureError as error:
            raise refusal(error, self._container) from None


@contextmanager
def opened(container: Container, layout: Layout) -> Iterator[Store]:
    credential = container.sas or DefaultAzureCredential()
    with ContainerClient.from_container_url(container.url, credential, retry_total=2) as client:
        yield Store(client, container, layout)


def refusal(error: AzureError, container: Container) -> Refused:
    code = str(getattr(getattr(error, "error_code", None), "value", "") or getattr(error, "error_code", "") or "")
    where = f"container {container.name} ({container.url})"
    if not container.sas and (isinstance(error, ClientAuthenticationError) or "Permission" in code):
        what = f"{where} denies you access: {code or _line(error)}"
        fix = (
            "az login; az role assignment create --role 'Storage Blob Data Contributor' --assignee <your object ID> "
            "--scope <ID of the account>"
        )
        return Refused(what, "an identity with a role on its blobs", fix)
    if code in _SAS_REJECTED:
        what = f"{where} rejects the SAS in the stack's outputs: {code}"
        allowed = "a valid SAS of that account; a private account also requires access from its network"
        fix = "pulumi up    # warns about an expired SAS; for the network: docs/cluster-access.md"
        return Refused(what, allowed, fix)
    if "Permission" in code:
        what = f"{where} denies a permission that a batch needs: {code}"
        return Refused(what, "a SAS with racwdlmp", f"set permissions of container {container.name}, and pulumi up")
    fix = "pulumi stack output storage; a private account is only reachable from its network (docs/cluster-access.md)"
    return Refused(f"{where} cannot be used: {code or _line(error)}", "a reachable container", fix)


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
