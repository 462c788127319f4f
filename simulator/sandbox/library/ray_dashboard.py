"""Serves a Ray head's health checks and job API, as far as KubeRay and `ray job` use them, and runs its jobs.

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
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from simulator.sandbox.library import http_api
from simulator.sandbox.library.http_api import Answer, Request
from simulator.sandbox.library.ray_cluster import AGENT_PORT, DASHBOARD_PORT, VERSION
from simulator.sandbox.library.recipe import Recipe

API_VERSION = "4"
ENDED = ("SUCCEEDED", "FAILED", "STOPPED")
_TOLD_LINES = 10
_PUBLIC = ("/", "/api/healthz", "/api/gcs_healthz", "/api/local_raylet_healthz")
_TOKEN_HEADERS = ("Authorization", "X-Ray-Authorization")
"""Headers that may have the token; the second one is KubeRay's."""


@dataclass
class Job:
    """One entrypoint, which runs next to the head."""

    name: str
    entrypoint: str
    log: Path
    messages: Recipe
    status: str = "PENDING"
    code: int = 0
    began: float = field(default_factory=time.time)
    ended: float = 0
    stopped: bool = False
    process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Runs the job until it ends."""
        with self.log.open("wb") as log:
            shell = ["/bin/sh", "-c", self.entrypoint]
            self.process = subprocess.Popen(
                shell, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.status = "RUNNING"
        self.code = self.process.wait()
        self.ended = time.time()
        self.status = "STOPPED" if self.stopped else "FAILED" if self.code else "SUCCEEDED"

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self) -> None:
        """Sends SIGTERM to all processes of the job."""
        if self.process and self.status not in ENDED:
            self.stopped = True
            os.killpg(self.process.pid, signal.SIGTERM)

    def details(self) -> dict[str, Any]:
        """Returns the job as in the API, with times in ms."""
        last = "".join(self.text().splitlines(keepends=True)[-_TOLD_LINES:])
        message = self.messages[self.status].format(code=self.code, last=last)
        told = {"entrypoint": self.entrypoint, "status": self.status, "message": message}
        times = {"start_time": int(self.began * 1000), "end_time": int(self.ended * 1000) or None}
        return {"type": "SUBMISSION", "submission_id": self.name, "job_id": None, **told, **times}


def bearer() -> str:
    """Returns the expected header value if the environment requires a token, otherwise an empty text."""
    asks = os.environ.get("RAY_AUTH_MODE", "disabled") == "token"
    return f"Bearer {os.environ.get('RAY_AUTH_TOKEN', '')}" if asks else ""


def serve(program: Recipe, *, head: bool) -> None:
    """Serves health, as every node does, and the head's dashboard."""
    http_api.serve("0.0.0.0", AGENT_PORT, health)  # noqa: S104 - of the sandbox's own network
    if head:
        http_api.serve("0.0.0.0", DASHBOARD_PORT, Dashboard(program["messages"]).answer)  # noqa: S104 - likewise


def health(request: Request) -> Answer:
    """Returns the health of a node."""
    answers = {"/api/healthz": "raylet: success\ngcs: success", "/api/local_raylet_healthz": "success"}
    return (200, answers[request.path]) if request.path in answers else (404, "404: Not Found")


class Dashboard:
    """The dashboard and job API of a head."""

    def __init__(self, messages: Recipe) -> None:
        self._messages, self._logs = messages, Path(tempfile.mkdtemp())
        self._jobs: dict[str, Job] = {}

    def answer(self, request: Request) -> Answer:
        """Handles a request. Rejects it without the token, if the cluster has one."""
        given = next(filter(None, (request.headers.get(name) for name in _TOKEN_HEADERS)), "")
        if bearer() and request.path not in _PUBLIC and given != bearer():
            missing, wrong = "Unauthorized: Missing authentication token", "Forbidden: Invalid authentication token"
            return (HTTPStatus.FORBIDDEN, wrong) if given else (HTTPStatus.UNAUTHORIZED, missing)
        return self._get(request.words) if request.method == "GET" else self._post(request)

    def _get(self, words: list[str]) -> Answer:
        match words:
            case ["api", "version"]:
                return 200, {"version": API_VERSION, "ray_version": VERSION, "ray_commit": ""}
            case ["api", "gcs_healthz"]:
                return 200, "success"
            case ["api", "jobs"]:
                return 200, [job.details() for job in self._jobs.values()]
            case ["api", "jobs", name] if name in self._jobs:
                return 200, self._jobs[name].details()
            case ["api", "jobs", name, "logs"] if name in self._jobs:
                return 200, {"logs": self._jobs[name].text()}
            case ["api", "jobs", name, *_]:
                return 404, f"Job {name} does not exist"
        jobs = "".join(f"{name}: {job.status}\n" for name, job in self._jobs.items())
        return 200, f"Ray's dashboard, which the simulator has in words alone. Jobs:\n{jobs}"

    def _post(self, request: Request) -> Answer:
        match request.words:
            case ["api", "jobs"]:
                return self._submit(json.loads(request.body))
            case ["api", "jobs", name, "stop"] if name in self._jobs:
                self._jobs[name].stop()
                return 200, {"stopped": True}
        return 404, "404: Not Found"

    def _submit(self, asked: dict[str, Any]) -> Answer:
        name = str(asked.get("submission_id") or f"raysubmit_{len(self._jobs) + 1}")
        if name in self._jobs:
            return 500, f"Job with submission_id {name} already exists. Please use a different submission_id."
        log = self._logs / f"job-driver-{len(self._jobs)}.log"
        log.touch()
        self._jobs[name] = job = Job(name, str(asked["entrypoint"]), log, self._messages)
        threading.Thread(target=job.run, daemon=True).start()
        return 200, {"job_id": name, "submission_id": name}
