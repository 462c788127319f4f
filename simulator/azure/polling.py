"""Where the end of an operation is to be seen: at its status, or at what comes of it.

Clusters and pools have a status (Azure-AsyncOperation), new storage accounts and deleted groups a result (Location),
which answers 202 until it is there. Other changes of accounts are answered when they are done. Sources: Azure's page
"Track asynchronous Azure operations", the REST specification, and the statuses that the azure-mgmt packages take.
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
from simulator.azure.rest import Response
from simulator.azure.rooms import kinds
from simulator.azure.store import Body, Record

_STATUSES, _RESULTS = "operations", "operationresults"
_VERSION = "2025-09-01"
_SOON = {"Retry-After": "1"}
"""Without it the azure-native plugin polls every 10 seconds, and every 30 for a deletion (client_azcore.go)."""


class Polling:
    """Answers what begins an operation, and what asks for its end."""

    def __init__(self, world: World, endpoint: str) -> None:
        self._world, self._endpoint = world, endpoint

    def began(self, status: int, record: Record, kind: Kind, done: Future[None]) -> Response:
        """`status` is that of the change: Created, OK of an update, Accepted of a deletion. Raises ArmError."""
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
        """The answer to an action: its result has a path of its own."""
        location = f"{self._endpoint}{result.id.text}?api-version={_VERSION}"
        return Response(HTTPStatus.ACCEPTED, None, {"Location": location, **_SOON})

    def find(self, path: Path) -> Response | None:
        """The answer at an operation's URL; None for what is none. Raises ArmError."""
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
        """What came of an operation that has ended. Raises ArmError where it failed."""
        record = self._world.store.get(resource)
        if record is None:
            return Response(HTTPStatus.OK)
        if record.state == "Failed" and record.error:
            raise conflict(record.error["message"], code=record.error["code"])
        return Response(HTTPStatus.OK, kinds()[resource.type.lower()].view(self._world, record))

    def _url(self, resource: ResourceId, what: str) -> str:
        """An operation is known by its resource, so its id needs no store."""
        operation = base64.urlsafe_b64encode(resource.text.encode()).decode().rstrip("=")
        path = f"providers/{resource.type.partition('/')[0]}/locations/global/{what}/{operation}"
        return f"{self._endpoint}/subscriptions/{resource.subscription}/{path}?api-version={_VERSION}"


def _resource(operation: str) -> ResourceId | None:
    """None for what is no operation's id."""
    try:
        return parse_id(base64.urlsafe_b64decode(operation + "=" * (-len(operation) % 4)).decode())
    except (ValueError, binascii.Error):
        return None


def _status(operation: str, record: Record | None) -> Body:
    """A deleted resource was deleted well."""
    if record is not None and record.busy:
        return {"name": operation, "status": "InProgress"}
    if record is not None and record.state == "Failed":
        return {"name": operation, "status": "Failed", "error": record.error}
    return {"name": operation, "status": "Succeeded"}
