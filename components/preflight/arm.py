"""Sends GET requests to Azure Resource Manager that the azure-native SDK does not offer.

The requests use the plugin's token, which is only sent to Azure's endpoint. A missing response is an `Unread`, not an
exception, because a failed lookup must not prevent a deployment.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from typing import Any

import pulumi
import requests
from pulumi_azure_native import authorization
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from config.rules.subscription import Objection
from config.schema.regions import cloud

Json = dict[str, Any]
_METADATA = "/metadata/endpoints?api-version=2022-09-01"
"""The path where a custom cloud describes its endpoints, as in the plugin (pkg/azure/cloud/metadata)."""
_TIMEOUT_S = 20.0
_RETRIED = frozenset({408, 429, 500, 502, 503, 504})
"""The statuses that the plugin retries (its client_azcore.go)."""
_RETRY = Retry(
    total=4, connect=0, read=0, status_forcelist=_RETRIED, backoff_factor=0.5, retry_after_max=8, raise_on_status=False
)
_PAGES = 50
_PARALLEL = 10


@dataclass(frozen=True)
class Unread:
    """Why a response from Azure is missing."""

    why: str

    @property
    def absent(self) -> bool:
        return self.why.startswith(str(int(HTTPStatus.NOT_FOUND)))


@dataclass(frozen=True)
class Arm:
    endpoint: str
    token: str = field(repr=False)

    def get(self, paths: Mapping[str, str]) -> dict[str, Json | Unread]:
        """Requests the paths (with queries) in parallel. Returns the answers by key. Joins the pages of lists."""
        with ThreadPoolExecutor(_PARALLEL) as pool:
            return dict(zip(paths, pool.map(self._read_pages, paths.values()), strict=True))

    def _read_pages(self, path: str) -> Json | Unread:
        values: list[Any] = []
        url: Any = self.endpoint + path
        for _ in range(_PAGES):
            page = _read(url, self.token)
            if isinstance(page, Unread):
                return page
            values += page["value"] if isinstance(page.get("value"), list) else []
            url = page.get("nextLink")
            if not url:
                return {**page, "value": values} if values else page
            if not str(url).startswith(f"{self.endpoint}/"):
                return Unread(f"the next page of the response is at another host than {self.endpoint}")
        return Unread(f"more than {_PAGES} pages")


def connect(region: str) -> Arm | Unread:
    endpoint = _endpoint(region)
    if isinstance(endpoint, Unread):
        return endpoint
    try:
        return Arm(endpoint, authorization.get_client_token().token)
    except Exception as error:  # noqa: BLE001 - invokes raise bare exceptions
        return Unread(f"no token for {endpoint}: {error}")


def _endpoint(region: str) -> str | Unread:
    host = pulumi.Config("azure-native").get("metadataHost") or os.environ.get("ARM_METADATA_HOSTNAME")
    if not host:
        return cloud(region).management
    found = _read(f"{host if '://' in host else f'https://{host}'}{_METADATA}")
    if isinstance(found, Unread):
        return found
    where = str(found.get("resourceManager") or "").rstrip("/")
    return where or Unread(f"{host} does not name its Resource Manager")


def _read(url: str, token: str = "") -> Json | Unread:
    where = url.partition("?")[0]
    try:
        status, content = fetch(url, token)
    except (OSError, ValueError) as error:  # no connection, TLS failure, timeout; invalid URL
        return Unread(f"{where}: {error}")
    found = _json(content)
    if status != HTTPStatus.OK:
        return Unread(f"{status} {_code(found)}".strip())
    return Unread(f"{where} does not answer with JSON") if found is None else found


def _json(content: bytes) -> Json | None:
    try:
        found = json.loads(content)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _code(refusal: Json | None) -> str:
    error = (refusal or {}).get("error")
    return str(error.get("code", "")) if isinstance(error, dict) else ""


def fetch(url: str, token: str = "") -> tuple[int, bytes]:
    """Returns the status and content of one GET request. Retries temporary failures.

    Raises:
        OSError: The host does not answer.
        ValueError: The URL is not HTTPS.
    """
    if not url.startswith("https://"):
        raise ValueError(f"{url} does not begin with https://")

    def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
        if token:
            request.headers["Authorization"] = f"Bearer {token}"
        return request

    with requests.Session() as session:
        session.mount("https://", MachineTrust(max_retries=_RETRY))
        answer = session.get(url, auth=sign, timeout=_TIMEOUT_S)  # a redirect to another host gets no token
        return answer.status_code, answer.content


class MachineTrust(HTTPAdapter):
    """An adapter that trusts the machine's certificates (SSL_CERT_FILE, system store), not only the library's."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, ssl_context=_trusted(), **options)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        return super().proxy_manager_for(proxy, ssl_context=_trusted(), **options)


@cache
def _trusted() -> ssl.SSLContext:
    """Returns the TLS context with the trusted certificates.

    It is cached, because loading all certificates takes longer than a request.
    """
    return ssl.create_default_context()


@dataclass(frozen=True)
class Question:
    about: str
    paths: tuple[str, ...]
    judge: Callable[[Json], Iterable[Objection]]
    absent: str = ""
    """The error for a missing resource; empty if a missing resource does not stop the update."""
    list_: str = ""


def look_up(asked: Sequence[Question], arm: Arm | Unread) -> Iterator[Objection]:
    answers = answers_at(arm, [path for question in asked for path in question.paths])
    for question in asked:
        found = [answers[path] for path in question.paths]
        answer = next((each for each in found if not isinstance(each, Unread)), found[-1])
        yield from _unread(question, answer) if isinstance(answer, Unread) else _judged(question, answer)


def answers_at(arm: Arm | Unread, paths: Iterable[str]) -> Mapping[str, Json | Unread]:
    return dict.fromkeys(paths, arm) if isinstance(arm, Unread) else arm.get({path: path for path in paths})


def _judged(question: Question, answer: Json) -> Iterable[Objection]:
    try:
        return list(question.judge(answer))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return _unread(question, Unread(f"unexpected answer ({error})"))


def _unread(question: Question, answer: Unread) -> Iterator[Objection]:
    if question.absent and answer.absent:
        yield Objection(question.absent, (question.list_,) if question.list_ else ())
        return
    what = f"{question.about} could not be looked up in Azure: {answer.why}. Azure may reject the update later."
    yield Objection(what, stops=False)
