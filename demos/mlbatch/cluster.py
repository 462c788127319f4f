"""The cluster as its users have it: kubectl as alice, as bob, and as whoever administrates."""

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
    """A step that did not come out as it should; the message tells what was seen."""


class Denied(Exception):
    """kubectl was refused; the message is the API server's."""


class Cluster:
    """By the kubeconfig that kubectl takes. A user is impersonated; without one it is the kubeconfig's own."""

    def __init__(self, context: str = "") -> None:
        """`context` is of the kubeconfig; empty for its current one."""
        self._context = context

    def kubectl(self, *arguments: str, user: str = "") -> str:
        """What it prints. Raises Denied."""
        of = [f"--context={self._context}"] if self._context else []
        command = ["kubectl", *of, *([f"--as={user}"] if user else []), *arguments]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            message = f"kubectl cannot be started: {error.strerror}\n  fix: install it; on the simulator: make shell"
            raise Failed(message) from None
        if answer.returncode:
            raise Denied(answer.stderr.strip() or answer.stdout.strip())
        return answer.stdout

    def create(self, file: str, team: str, user: str) -> str:
        """Makes the object of a file in the team's namespace; `<kind>/<name>`. Raises Denied."""
        made = self.kubectl("create", f"--namespace={team}", f"--filename={JOBS / file}", "--output=name", user=user)
        return made.strip()

    def get(self, name: str, team: str) -> Object:
        """The object `<kind>/<name>`. Raises Denied where there is none."""
        found: Object = json.loads(self.kubectl("get", name, f"--namespace={team}", "--output=json"))
        return found

    def pods(self, team: str, job: str = "") -> list[Object]:
        """Those of a team, or of one of its jobs, `<kind>/<name>`."""
        selector = [f"--selector=job-name={job.rpartition('/')[2]}"] if job else []
        return self._list("pods", f"--namespace={team}", *selector)

    def nodes(self) -> list[Object]:
        return self._list("nodes")

    def _list(self, *arguments: str) -> list[Object]:
        found: list[Object] = json.loads(self.kubectl("get", *arguments, "--output=json"))["items"]
        return found

    def waits(self, look: Callable[[], _Found], what: str, seconds: float) -> _Found:
        """The first answer that is true. Raises Failed after so many seconds."""
        deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE_S
        while not (found := look()):
            if time.monotonic() > deadline:
                raise Failed(f"{what}: not within {seconds:.0f} s")
            time.sleep(pause)
            pause = min(2 * pause, _LAST_PAUSE_S)
        return found


def runs(pod: Object) -> bool:
    """Whether its containers do."""
    return bool(pod["status"].get("phase") == "Running")


def gpus(pod: Object) -> int:
    """How many it has."""
    return device_requests(pod).get(GPU_RESOURCE, 0)
