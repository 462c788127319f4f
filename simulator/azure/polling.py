"""Polling of operations, at a status URL or a result URL.

Clusters and pools have a status URL (Azure-AsyncOperation). New storage accounts and deleted groups have a result URL
(Location), which returns 202 until the operation ends. Other changes of accounts end before the response. Sources:
Azure's page "Track asynchronous Azure operations", the REST specification, and the statuses in the azure-mgmt packages.
"""

from __future__ import annotations

import base64
import binascii
from concurrent.futures import Future
from http import HTTPStatus

from simulator.azure.arm_world import World
from simulator.azure.errors import conflict
from simulator.azure.ids import Path, ResourceId, parse_id
from simulator.azure.kind import Kind
from simulator.azure.resource_types import kinds
from simulator.azure.rest import Response
from simulator.azure.store import Body, Record

_STATUSES, _RESULTS = "operations", "operationresults"
_VERSION = "2025-09-01"
_SOON = {"Retry-After": "1"}
"""A short polling interval. azure-native's default is 10 seconds, and 30 for deletions (client_azcore.go)."""


class Polling:
    """The first responses of operations, and the responses to polling."""

    def __init__(self, world: World, endpoint: str) -> None:
        self._world, self._endpoint = world, endpoint

    def first_response(self, status: int, record: Record, kind: Kind, done: Future[None]) -> Response:
        """Returns the first response. `status` is Created, OK (updates) or Accepted (deletions). Raises ArmError."""
        if kind.creation_alone and status != HTTPStatus.CREATED:
            done.result()
            return self._result(record.id)
        if kind.creation_alone or kind.deleted_later:
            return self._accepted(record.id)
        has_body = status != HTTPStatus.ACCEPTED or record.state == "UpgradingNodeImageVersion"
        result = {"Location": self._url(record.id, _RESULTS)} if status == HTTPStatus.ACCEPTED else {}
        headers = {"Azure-AsyncOperation": self._url(record.id, _STATUSES), **result, **_SOON}
        return Response(status, kind.view(self._world, record) if has_body else None, headers)

    def result_at(self, result: Record) -> Response:
        location = f"{self._endpoint}{result.id.text}?api-version={_VERSION}"
        return Response(HTTPStatus.ACCEPTED, None, {"Location": location, **_SOON})

    def find(self, path: Path) -> Response | None:
        """Returns the response at an operation's URL, or None for another path. Raises ArmError."""
        what = path.type.lower().partition("/locations/")[2]
        resource = _resource(path.names[-1]) if path.names and what in (_STATUSES, _RESULTS) else None
        if resource is None:
            return None
        record = self._world.store.get(resource)
        if what == _STATUSES:
            return Response(HTTPStatus.OK, _status(path.names[-1], record), _SOON)
        return self._accepted(resource) if record is not None and record.busy else self._result(resource)

    def _accepted(self, resource: ResourceId) -> Response:
        return Response(HTTPStatus.ACCEPTED, None, {"Location": self._url(resource, _RESULTS), **_SOON})

    def _result(self, resource: ResourceId) -> Response:
        record = self._world.store.get(resource)
        if record is None:
            return Response(HTTPStatus.OK)
        if record.state == "Failed" and record.error:
            raise conflict(record.error["message"], code=record.error["code"])
        return Response(HTTPStatus.OK, kinds()[resource.type.lower()].view(self._world, record))

    def _url(self, resource: ResourceId, what: str) -> str:
        """Returns a URL that encodes the resource, so that operations need no storage."""
        operation = base64.urlsafe_b64encode(resource.text.encode()).decode().rstrip("=")
        path = f"providers/{resource.type.partition('/')[0]}/locations/global/{what}/{operation}"
        return f"{self._endpoint}/subscriptions/{resource.subscription}/{path}?api-version={_VERSION}"


def _resource(operation: str) -> ResourceId | None:
    try:
        return parse_id(base64.urlsafe_b64decode(operation + "=" * (-len(operation) % 4)).decode())
    except (ValueError, binascii.Error):
        return None


def _status(operation: str, record: Record | None) -> Body:
    """Returns the status. If the resource is missing, its deletion succeeded."""
    if record is not None and record.busy:
        return {"name": operation, "status": "InProgress"}
    if record is not None and record.state == "Failed":
        return {"name": operation, "status": "Failed", "error": record.error}
    return {"name": operation, "status": "Succeeded"}
