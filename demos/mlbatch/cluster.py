"""Accesses the cluster as its users do: with kubectl as alice, as bob, and as the administrator."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from config.data.scheduling import GPU_RESOURCE
from k8s.objects import Object
from k8s.resources import device_requests

JOBS = Path(__file__).parent / "jobs"
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.5, 2.0
_Found = TypeVar("_Found")


class Failed(Exception):
    """Raised if a step does not have the expected result. The message reports the observed state."""


class Denied(Exception):
    """Raised if the API server denied a request. The message is the API server's."""


class Cluster:
    """The cluster of kubectl's kubeconfig. Commands impersonate `user` if it is set."""

    def __init__(self, context: str = "") -> None:
        """Uses `context` of the kubeconfig, or the current context if it is empty."""
        self._context = context

    def kubectl(self, *arguments: str, user: str = "") -> str:
        """Returns kubectl's output. Raises Denied."""
        context = [f"--context={self._context}"] if self._context else []
        command = ["kubectl", *context, *([f"--as={user}"] if user else []), *arguments]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            message = f"kubectl cannot be started: {error.strerror}\n  fix: install it; on the simulator: make shell"
            raise Failed(message) from None
        if answer.returncode:
            raise Denied(answer.stderr.strip() or answer.stdout.strip())
        return answer.stdout

    def create(self, file: str, team: str, user: str) -> str:
        """Creates the object of a file in the team's namespace, and returns `<kind>/<name>`. Raises Denied."""
        made = self.kubectl("create", f"--namespace={team}", f"--filename={JOBS / file}", "--output=name", user=user)
        return made.strip()

    def get(self, name: str, team: str) -> Object:
        """Returns the object `<kind>/<name>`. Raises Denied if it does not exist."""
        found: Object = json.loads(self.kubectl("get", name, f"--namespace={team}", "--output=json"))
        return found

    def pods(self, team: str, job: str = "") -> list[Object]:
        selector = [f"--selector=job-name={job.rpartition('/')[2]}"] if job else []
        return self._list("pods", f"--namespace={team}", *selector)

    def nodes(self) -> list[Object]:
        return self._list("nodes")

    def _list(self, *arguments: str) -> list[Object]:
        found: list[Object] = json.loads(self.kubectl("get", *arguments, "--output=json"))["items"]
        return found

    def wait(self, look: Callable[[], _Found], what: str, seconds: float) -> _Found:
        """Calls `look` until its result is true, and returns that result. Raises Failed after `seconds`."""
        deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE_S
        while not (found := look()):
            if time.monotonic() > deadline:
                raise Failed(f"timeout after {seconds:.0f} s: {what}")
            time.sleep(pause)
            pause = min(2 * pause, _LAST_PAUSE_S)
        return found


def is_running(pod: Object) -> bool:
    return bool(pod["status"].get("phase") == "Running")


def gpus(pod: Object) -> int:
    return device_requests(pod).get(GPU_RESOURCE, 0)
