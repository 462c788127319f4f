"""A Resource Manager client that awaits long operations, retries transient errors and explains failures."""

from __future__ import annotations

import os
import ssl
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from simulator.azure.rest import CORRELATION, CREATOR
from simulator.plugins.errors import PluginError

ENDPOINT = "SIMULATOR_ARM_ENDPOINT"
TOKEN_FILE = "SIMULATOR_ARM_TOKEN_FILE"  # noqa: S105 - the name of a variable
DEFAULT_TIMEOUT_S = 7200.0  # for one operation, as in the official plugin
_REQUEST_TIMEOUT_S = 60.0
# The official plugin's retry policy: client_azcore.go, and Azure's SDK for Go.
_RETRIED = frozenset({408, 429, 500, 502, 503, 504})
_RETRIED_CONFLICT = "AnotherOperationInProgress"  # AKS returns OperationNotAllowed instead, which is not retried
_ATTEMPTS = 4
_LONGEST_PAUSE_S = 120.0  # a response with a longer Retry-After is not retried
_FIRST_PAUSE_S = 0.2  # if Retry-After is missing; doubles each time. The official plugin starts with 20 s
_UNAVAILABLE_S = 120.0  # a cluster that boots with the simulator answers 503 at most this long
_POLL_S = 0.25
_NO_SIMULATOR = (
    "no simulator is running{why}; this azure-native plugin is an emulation and cannot reach real Azure. "
    "For the simulator: run `make up`, or `python -m simulator start` inside `make shell`. "
    "For real Azure: leave `make shell`, run `pulumi plugin install resource azure-native 3.29.0`, and `az login`."
)


class ArmFailure(PluginError):
    """An error of ARM, with the official plugin's message."""

    def __init__(self, status: int, code: str, message: str, body: str = "") -> None:
        shown = f'Status={status} Code="{code}" Message="{message}"' if code else f'Status={status} Message="{message}"'
        super().__init__(shown)
        self.status, self.code, self.message, self.body = status, code, message, body


class OperationFailed(ArmFailure):
    """The failure of a long operation that ARM had accepted. The resource exists."""


@dataclass
class Deadline:
    """The time limit of an operation. The event `cancelled` ends it earlier."""

    cancelled: threading.Event
    seconds: float = DEFAULT_TIMEOUT_S

    def __post_init__(self) -> None:
        self._end = time.monotonic() + (self.seconds or DEFAULT_TIMEOUT_S)

    def wait(self, seconds: float) -> None:
        """Sleeps. Raises PluginError if the limit has passed or the engine cancels the operation."""
        if time.monotonic() > self._end:
            raise PluginError("operation timed out")
        if self.cancelled.wait(seconds):
            raise PluginError("operation canceled; it continues in Azure, and the next `pulumi up` resumes it")


class ArmClient:
    """A client with a token. Raises ArmFailure for errors of ARM, and PluginError if no simulator answers."""

    def __init__(self, endpoint: str, token: str) -> None:
        self.token = token
        self._http = httpx.Client(
            base_url=endpoint,
            headers={"Authorization": f"Bearer {token}"},
            timeout=_REQUEST_TIMEOUT_S,
            trust_env=False,
            verify=ssl.create_default_context(),  # uses SSL_CERT_FILE, as the official plugin does
        )

    @classmethod
    def from_environment(cls) -> ArmClient:
        endpoint, token_file = os.environ.get(ENDPOINT), os.environ.get(TOKEN_FILE)
        if not endpoint or not token_file:
            raise PluginError(_NO_SIMULATOR.format(why=f" ({ENDPOINT} is not set)"))
        try:
            token = Path(token_file).read_text().strip()
        except OSError as error:
            raise PluginError(_NO_SIMULATOR.format(why=f" (cannot read {token_file}: {error.strerror})")) from error
        return cls(endpoint, token)

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, api_version: str, deadline: Deadline) -> dict[str, Any]:
        return self._json(self._request("GET", path, api_version, deadline))

    def find(self, path: str, api_version: str, deadline: Deadline) -> tuple[dict[str, Any], str] | None:
        """Returns the resource and its creator's id, or None if the resource is missing."""
        try:
            response = self._request("GET", path, api_version, deadline)
        except ArmFailure as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return self._json(response), response.headers.get(CREATOR, "")

    def put(
        self, path: str, api_version: str, body: Mapping[str, Any], deadline: Deadline, *, creator: str = ""
    ) -> dict[str, Any]:
        """Creates or updates the resource, waits, and returns the resource. Uses PATCH if the body has nulls."""
        headers = {CORRELATION: creator} if creator else {}
        method = "PATCH" if _has_null(body) else "PUT"  # provider/pkg/provider/crud/crud.go, CreateOrUpdate
        self._await(self._request(method, path, api_version, deadline, body=body, headers=headers), deadline)
        return self.get(path, api_version, deadline)

    def post(
        self,
        path: str,
        api_version: str,
        deadline: Deadline,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        return self._json(self._request("POST", path, api_version, deadline, body=body or {}, query=query))

    def delete(self, path: str, api_version: str, deadline: Deadline) -> None:
        """Deletes the resource and waits for the end. A missing resource counts as deleted."""
        try:
            self._await(self._request("DELETE", path, api_version, deadline), deadline)
        except ArmFailure as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise

    def settle(self, path: str, api_version: str, deadline: Deadline) -> dict[str, Any] | None:
        while found := self.find(path, api_version, deadline):
            resource, _ = found
            if (resource.get("properties") or {}).get("provisioningState", "Succeeded") in (
                "Succeeded",
                "Failed",
                "Canceled",
            ):
                return resource
            deadline.wait(_POLL_S)
        return None

    def _await(self, response: httpx.Response, deadline: Deadline) -> None:
        url = response.headers.get("Azure-AsyncOperation")
        while not url and response.status_code == HTTPStatus.ACCEPTED:
            deadline.wait(_POLL_S)
            try:
                response = self._request("GET", response.headers["Location"], "", deadline)
            except ArmFailure as failure:
                raise OperationFailed(failure.status, failure.code, failure.message) from failure
        while url:
            operation = self._json(self._request("GET", url, "", deadline))
            if operation["status"] == "Succeeded":
                return
            if operation["status"] in ("Failed", "Canceled"):
                error = operation.get("error") or {}
                raise OperationFailed(HTTPStatus.OK, error.get("code", operation["status"]), error.get("message", ""))
            deadline.wait(_POLL_S)

    def _request(
        self,
        method: str,
        path: str,
        api_version: str,
        deadline: Deadline,
        *,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        params = ({"api-version": api_version} if api_version else {}) | dict(query or {})
        attempt, unavailable_until = 0, time.monotonic() + _UNAVAILABLE_S
        while True:
            last, pause = attempt == _ATTEMPTS - 1, _FIRST_PAUSE_S * 2**attempt
            try:
                response = self._http.request(method, path, params=params or None, json=body, headers=headers)
            except httpx.TransportError as error:
                if last:
                    raise PluginError(_NO_SIMULATOR.format(why=f" at {self._http.base_url}")) from error
            else:
                pause = float(response.headers.get("Retry-After") or pause)
                boots = response.status_code == HTTPStatus.SERVICE_UNAVAILABLE and time.monotonic() < unavailable_until
                if not _is_retryable(response) or pause > _LONGEST_PAUSE_S or (last and not boots):
                    return _checked(response)
            deadline.wait(pause)
            attempt = min(attempt + 1, _ATTEMPTS - 1)

    @staticmethod
    def _json(response: httpx.Response) -> dict[str, Any]:
        found: dict[str, Any] = response.json() if response.content else {}
        return found


def _has_null(body: Any) -> bool:
    return body is None or (isinstance(body, Mapping) and any(map(_has_null, body.values())))


def _is_retryable(response: httpx.Response) -> bool:
    if response.status_code == HTTPStatus.CONFLICT:
        return _error(response).get("code") == _RETRIED_CONFLICT
    return response.status_code in _RETRIED


def _error(response: httpx.Response) -> dict[str, Any]:
    try:
        found: dict[str, Any] = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found


def creator_of(urn: str) -> str:
    """Returns the correlation id of the requests that create a resource. It identifies an interrupted creation."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, urn))


def _checked(response: httpx.Response) -> httpx.Response:
    if response.status_code < HTTPStatus.BAD_REQUEST:
        return response
    error = _error(response)
    raise ArmFailure(response.status_code, error.get("code", ""), error.get("message", response.text), response.text)
