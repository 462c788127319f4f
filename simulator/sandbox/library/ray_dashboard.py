"""What a head of Ray serves: health, and the API of jobs, as far as KubeRay and `ray job` ask it; and its jobs.

Source: Ray 2.60.0, dashboard/modules/job/job_head.py, job_supervisor.py and reporter/healthz_agent.py; for tokens,
dashboard/http_server_head.py and _private/authentication/http_token_authentication.py.
"""

from __future__ import annotations

import http.server
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import Any

from simulator.sandbox.library.ray_cluster import AGENT_PORT, DASHBOARD_PORT, VERSION

API_VERSION = "4"
ENDED = ("SUCCEEDED", "FAILED", "STOPPED")
_TOLD_LINES = 10
_PUBLIC = ("/", "/api/healthz", "/api/gcs_healthz", "/api/local_raylet_healthz")
_TOKEN_HEADERS = ("Authorization", "X-Ray-Authorization")
"""The second one is KubeRay's."""


@dataclass
class Job:
    """One entrypoint, run beside the head."""

    entrypoint: str
    log: Path
    status: str = "PENDING"
    message: str = "Job is currently running."
    began: float = field(default_factory=time.time)
    ended: float = 0
    stopped: bool = False
    process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Until it has ended."""
        with self.log.open("wb") as log:
            shell = ["/bin/sh", "-c", self.entrypoint]
            self.process = subprocess.Popen(
                shell, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.status = "RUNNING"
        code = self.process.wait()
        self.ended = time.time()
        if self.stopped:
            self.status, self.message = "STOPPED", "Job was intentionally stopped."
        elif code == 0:
            self.status, self.message = "SUCCEEDED", "Job finished successfully."
        else:
            last = "".join(self.text().splitlines(keepends=True)[-_TOLD_LINES:])
            self.message = (
                f"Job entrypoint command failed with exit code {code}, "
                f"last available logs (truncated to 20,000 chars):\n{last}"
            )
            self.status = "FAILED"

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self) -> None:
        """By SIGTERM to all of its processes."""
        if self.process and self.status not in ENDED:
            self.stopped = True
            os.killpg(self.process.pid, signal.SIGTERM)

    def details(self, name: str) -> dict[str, Any]:
        times = {"start_time": int(self.began * 1000), "end_time": int(self.ended * 1000) or None}
        told = {"status": self.status, "message": self.message, "entrypoint": self.entrypoint}
        return {"type": "SUBMISSION", "submission_id": name, "job_id": None, **told, **times}


def bearer() -> str:
    """The header's value where the environment asks for a token, else empty."""
    asks = os.environ.get("RAY_AUTH_MODE", "disabled") == "token"
    return f"Bearer {os.environ.get('RAY_AUTH_TOKEN', '')}" if asks else ""


def refusal(path: str, headers: Message[str, str]) -> tuple[HTTPStatus, str] | None:
    """Why a request is refused, if it is."""
    wanted = bearer()
    given = next(filter(None, (headers.get(name) for name in _TOKEN_HEADERS)), "")
    if not wanted or path in _PUBLIC or given == wanted:
        return None
    if not given:
        return HTTPStatus.UNAUTHORIZED, "Unauthorized: Missing authentication token"
    return HTTPStatus.FORBIDDEN, "Forbidden: Invalid authentication token"


def serve_head() -> None:
    """Dashboard and health, each in a thread of its own."""
    _serve(DASHBOARD_PORT, type("Handler", (_Dashboard,), {"jobs": {}, "logs": Path(tempfile.mkdtemp())}))
    serve_node()


def serve_node() -> None:
    """Health, as on every node."""
    _serve(AGENT_PORT, _Agent)


def _serve(port: int, handler: type[http.server.BaseHTTPRequestHandler]) -> None:
    server = http.server.ThreadingHTTPServer(("0.0.0.0", port), handler)  # noqa: S104 - of its own network
    threading.Thread(target=server.serve_forever, daemon=True).start()


class _Agent(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/api/healthz":
            self._answer(HTTPStatus.OK, "raylet: success\ngcs: success")
        elif self.path == "/api/local_raylet_healthz":
            self._answer(HTTPStatus.OK, "success")
        else:
            self._answer(HTTPStatus.NOT_FOUND, "404: Not Found")

    def _answer(self, status: int, body: str | dict[str, Any] | list[Any]) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""


class _Dashboard(_Agent):
    jobs: dict[str, Job]
    logs: Path

    def parse_request(self) -> bool:
        """Also refuses requests without the token."""
        if not super().parse_request():
            return False
        if refused := refusal(self.path.partition("?")[0], self.headers):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))  # else the client may get a reset, no answer
            self._answer(*refused)
        return refused is None

    def do_GET(self) -> None:
        match self.path.partition("?")[0].strip("/").split("/"):
            case ["api", "version"]:
                self._answer(HTTPStatus.OK, {"version": API_VERSION, "ray_version": VERSION, "ray_commit": ""})
            case ["api", "gcs_healthz"]:
                self._answer(HTTPStatus.OK, "success")
            case ["api", "jobs"]:
                self._answer(HTTPStatus.OK, [job.details(name) for name, job in self.jobs.items()])
            case ["api", "jobs", name, *rest] if name in self.jobs and rest in ([], ["logs"]):
                job = self.jobs[name]
                self._answer(HTTPStatus.OK, {"logs": job.text()} if rest else job.details(name))
            case ["api", "jobs", name, *_]:
                self._answer(HTTPStatus.NOT_FOUND, f"Job {name} does not exist")
            case _:
                jobs = "".join(f"{name}: {job.status}\n" for name, job in self.jobs.items())
                self._answer(HTTPStatus.OK, f"Ray's dashboard, which the simulator has in words alone. Jobs:\n{jobs}")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        match self.path.strip("/").split("/"):
            case ["api", "jobs"]:
                self._submit(json.loads(body))
            case ["api", "jobs", name, "stop"] if name in self.jobs:
                self.jobs[name].stop()
                self._answer(HTTPStatus.OK, {"stopped": True})
            case _:
                self._answer(HTTPStatus.NOT_FOUND, "404: Not Found")

    def _submit(self, asked: dict[str, Any]) -> None:
        name = str(asked.get("submission_id") or f"raysubmit_{len(self.jobs) + 1}")
        if name in self.jobs:
            told = f"Job with submission_id {name} already exists. Please use a different submission_id."
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, told)
            return
        log = self.logs / f"job-driver-{len(self.jobs)}.log"
        log.touch()
        self.jobs[name] = job = Job(str(asked["entrypoint"]), log)
        threading.Thread(target=job.run, daemon=True).start()
        self._answer(HTTPStatus.OK, {"job_id": name, "submission_id": name})
