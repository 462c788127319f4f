"""Runs the jobs of a Ray head. Serves the job API and health checks as far as KubeRay and `ray job` use them.

Source: Ray 2.60.0, dashboard/modules/job/job_head.py, job_supervisor.py and reporter/healthz_agent.py. Tokens:
dashboard/http_server_head.py and _private/authentication/http_token_authentication.py.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

from simulator.sandbox.library.http_api import Answer, Request
from simulator.sandbox.library.recipe import Recipe

ENDED = ("SUCCEEDED", "FAILED", "STOPPED")
_LAST_LINES = 10
_PUBLIC = ("/", "/api/healthz", "/api/gcs_healthz", "/api/local_raylet_healthz")
_TOKEN_HEADERS = ("Authorization", "X-Ray-Authorization")
"""Headers with the token. KubeRay uses the second header."""
_HEALTH = {"/api/healthz": "raylet: success\ngcs: success", "/api/local_raylet_healthz": "success"}
_MISSING = HTTPStatus.NOT_FOUND, "404: Not Found"


def bearer() -> str:
    """Returns the required Authorization header, or an empty string if the cluster has no token."""
    is_required = os.environ.get("RAY_AUTH_MODE", "disabled") == "token"
    return f"Bearer {os.environ.get('RAY_AUTH_TOKEN', '')}" if is_required else ""


def health(request: Request) -> Answer:
    return (HTTPStatus.OK, _HEALTH[request.path]) if request.path in _HEALTH else _MISSING


class Job:
    """A job. Its entrypoint runs in the head's container."""

    def __init__(self, name: str, entrypoint: str, messages: Recipe, log: Path) -> None:
        self.name, self._entrypoint, self._messages, self._log = name, entrypoint, messages, log
        self._began, self._ended, self._stopped = time.time(), 0.0, False
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", entrypoint],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        threading.Thread(target=self._wait, daemon=True).start()

    def text(self) -> str:
        return self._log.read_text(errors="replace")

    def stop(self) -> None:
        if not self._ended:
            self._stopped = True
            os.killpg(self._process.pid, signal.SIGTERM)

    @property
    def status(self) -> str:
        if not self._ended:
            return "RUNNING"
        return "STOPPED" if self._stopped else "FAILED" if self._process.returncode else "SUCCEEDED"

    def details(self) -> dict[str, Any]:
        """Returns the job as in the API, with times in ms."""
        last = "".join(self.text().splitlines(keepends=True)[-_LAST_LINES:])
        message = self._messages[self.status].format(code=self._process.returncode, last=last)
        times = {"start_time": int(self._began * 1000), "end_time": int(self._ended * 1000) or None}
        own = {"type": "SUBMISSION", "submission_id": self.name, "entrypoint": self._entrypoint}
        return {**own, **times, "status": self.status, "message": message}

    def _wait(self) -> None:
        self._process.wait()
        self._ended = time.time()


class Dashboard:
    """The job API of a head. The first page lists the jobs as text."""

    def __init__(self, messages: Recipe) -> None:
        self._messages, self._logs = messages, Path(tempfile.mkdtemp())
        self._jobs: dict[str, Job] = {}

    def answer(self, request: Request) -> Answer:
        """Handles a request. If the cluster has a token, rejects requests without it."""
        given = next(filter(None, (request.headers.get(name) for name in _TOKEN_HEADERS)), "")
        if bearer() and request.path not in _PUBLIC and given != bearer():
            missing, wrong = "Unauthorized: Missing authentication token", "Forbidden: Invalid authentication token"
            return (HTTPStatus.FORBIDDEN, wrong) if given else (HTTPStatus.UNAUTHORIZED, missing)
        match (request.method, *request.path.strip("/").split("/")):
            case ("GET", "api", "gcs_healthz"):
                return HTTPStatus.OK, "success"
            case ("GET", ""):
                jobs = "".join(f"{name}: {job.status}\n" for name, job in self._jobs.items())
                return HTTPStatus.OK, f"Ray's dashboard (text only on the simulator). Jobs:\n{jobs}"
            case ("GET", "api", "jobs"):
                return HTTPStatus.OK, [job.details() for job in self._jobs.values()]
            case ("POST", "api", "jobs"):
                return self._submit(json.loads(request.body))
            case (method, "api", "jobs", name, *rest) if name in self._jobs:
                return self._job(method, self._jobs[name], rest)
            case (_, "api", "jobs", name, *_):
                return HTTPStatus.NOT_FOUND, f"Job {name} does not exist"
        return _MISSING

    def _job(self, method: str, job: Job, rest: list[str]) -> Answer:
        match (method, *rest):
            case ("GET",):
                return HTTPStatus.OK, job.details()
            case ("GET", "logs"):
                return HTTPStatus.OK, {"logs": job.text()}
            case ("POST", "stop"):
                job.stop()
                return HTTPStatus.OK, {"stopped": True}
        return _MISSING

    def _submit(self, asked: dict[str, Any]) -> Answer:
        name = str(asked.get("submission_id") or f"raysubmit_{len(self._jobs) + 1}")
        if name in self._jobs:
            return 500, f"Job with submission_id {name} already exists. Please use a different submission_id."
        self._jobs[name] = Job(name, str(asked["entrypoint"]), self._messages, self._logs / f"{len(self._jobs)}.log")
        return HTTPStatus.OK, {"job_id": name, "submission_id": name}
