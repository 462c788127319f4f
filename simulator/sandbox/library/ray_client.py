"""How `ray job` reaches a head's API of jobs: real HTTP, by the uplink."""

from __future__ import annotations

import http.client
import json
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from simulator.sandbox.library import ray_cluster, ray_dashboard, uplink_client, view

_TIMEOUT_S = 30.0


class ClientError(Exception):
    """Ends the command, with Ray's words."""


class Unanswered(ClientError):
    """The head's node is gone: nobody answers, and a connection that is there is not closed either."""


class _Connection(http.client.HTTPConnection):
    """To a port of another pod."""

    def connect(self) -> None:
        self.sock = uplink_client.connect(self.host, self.port, _TIMEOUT_S)


class JobClient:
    """Of the cluster whose dashboard is at `address`."""

    def __init__(self, address: str) -> None:
        self._address = address
        parts = urlsplit(address)
        self._host, self._port = parts.hostname or "", parts.port or ray_cluster.DASHBOARD_PORT

    def submit(self, entrypoint: str, name: str) -> str:
        """The name that it has."""
        answer = self._ask("POST", "/api/jobs/", {"entrypoint": entrypoint, "submission_id": name or None})
        return str(answer["submission_id"])

    def details(self, name: str) -> dict[str, Any]:
        return self._ask("GET", f"/api/jobs/{name}")

    def log(self, name: str) -> str:
        return str(self._ask("GET", f"/api/jobs/{name}/logs")["logs"])

    def stop(self, name: str) -> None:
        self._ask("POST", f"/api/jobs/{name}/stop")

    def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Raises ClientError."""
        known = view.load()
        pod = known.resolve(self._host)
        refused = f"ConnectionError: Failed to connect to Ray at address: {self._address}."
        if pod is not None and pod.running and not ray_cluster.answers(known, pod):
            raise Unanswered(refused)
        if pod is None:
            raise ClientError(refused)
        try:
            connection = _Connection(pod.ip, self._port, timeout=_TIMEOUT_S)
            headers = {"Authorization": token} if (token := ray_dashboard.bearer()) else {}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise ClientError(refused) from error
        if answer.status != HTTPStatus.OK:
            raise ClientError(f"RuntimeError: Request failed with status code {answer.status}: {text}.")
        found: dict[str, Any] = json.loads(text)
        return found
