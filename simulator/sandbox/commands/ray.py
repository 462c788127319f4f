"""`ray start`, `ray health-check` and `ray job` for KubeRay's pods. `job` uses real HTTP through the uplink."""

from __future__ import annotations

import http.client
import json
import shlex
import sys
import time
from argparse import Namespace
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from simulator.sandbox.library import ray_cluster, ray_dashboard, recipe, uplink_client, view
from simulator.sandbox.library.recipe import Failed, Recipe

USAGE_CODE = 2
JOB_COMMANDS = ("submit", "status", "logs", "stop")
_POLL_S = 0.5
_TIMEOUT_S = 30.0


class Unanswered(Failed):
    """The head's node is gone: requests get no answer, and open connections stay open."""


class _Connection(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = uplink_client.connect(self.host, self.port, _TIMEOUT_S)


def main(arguments: list[str]) -> int:
    """Runs the command. Returns the exit codes of the real one."""
    program = view.program("ray")
    words = arguments[1:] if arguments[:1] == ["job"] else arguments
    command = words[0] if words else ""
    if command not in (JOB_COMMANDS if words is not arguments else ("start", "health-check")):
        print("Error: No such command; the simulator's ray has start, health-check and job", file=sys.stderr)
        return USAGE_CODE
    parser = recipe.parser(program[command])
    chosen = parser.parse_args(words[1:])
    if text := recipe.refusal(program["fails"], {"block": None, "no_wait": None, **vars(chosen)}):
        parser.error(text)
    try:
        if command == "start":
            _start(chosen, program)
        elif command == "health-check":
            _head(chosen.address, program)
        else:
            _job(command, chosen, program)
    except Failed as error:
        print(error, file=sys.stderr)
        return error.code
    return 0


def _start(chosen: Namespace, program: Recipe) -> None:
    """Stays a node of its cluster while its head answers. Then raises Failed."""
    known = view.load()
    head = known.me.key if chosen.head else _head(str(chosen.address), program)
    print(program["started"].format(ip=known.me.ip))
    ray_dashboard.serve(program, head=chosen.head)
    ray_cluster.join(head)
    seen = time.monotonic()
    while time.monotonic() - seen < ray_cluster.LOST_AFTER_S:
        time.sleep(_POLL_S)
        known = view.load()
        pod = known.pods.get(head)
        if pod and (pod.key == known.me.key or ray_cluster.answers(known, pod)):
            seen = time.monotonic()
    raise Failed(program["lost"])


def _head(address: str, program: Recipe) -> str:
    if head := ray_cluster.head_at(view.load(), address):
        return head.key
    raise Failed(program["no_head"].format(address=address))


def _job(command: str, chosen: Namespace, program: Recipe) -> None:
    """Runs a subcommand of `job`. Raises Failed. A failed job does not change the exit code."""
    print(f"Job submission server address: {chosen.address}")
    if command == "submit":
        body = {"entrypoint": shlex.join(chosen.entrypoint), "submission_id": chosen.submission_id or None}
        name = _ask(chosen.address, program, "POST", "", body)["submission_id"]
        _tell(program, name, {"status": "SUBMITTED"})
    elif command == "stop":
        _ask(chosen.address, program, "POST", f"{chosen.job_id}/stop")
    else:
        if command == "logs":
            _tell_log(chosen, program)
        if command == "status" or chosen.follow:
            _tell(program, chosen.job_id, _ask(chosen.address, program, "GET", chosen.job_id))


def _tell_log(chosen: Namespace, program: Recipe) -> None:
    """Prints the log of a job. Without an answer it waits forever, as on a WebSocket."""
    told, ended = 0, False
    while not ended:
        try:
            details = _ask(chosen.address, program, "GET", chosen.job_id)
            text = str(_ask(chosen.address, program, "GET", f"{chosen.job_id}/logs")["logs"])
        except Unanswered:
            time.sleep(_POLL_S)
            continue
        print(text[told:], end="", flush=True)
        told = len(text)
        ended = details["status"] in ray_dashboard.ENDED or not chosen.follow
        time.sleep(0 if ended else _POLL_S)


def _tell(program: Recipe, name: str, details: dict[str, Any]) -> None:
    rule = "-" * 40
    print(program["statuses"][details["status"]].format_map({"rule": rule, "name": name, **details}))


def _ask(address: str, program: Recipe, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """Returns the answer of a head's job API. Raises Failed."""
    parts, known = urlsplit(address), view.load()
    pod = known.resolve(parts.hostname or "")
    refused = program["no_dashboard"].format(address=address)
    if pod is not None and pod.running and not ray_cluster.answers(known, pod):
        raise Unanswered(refused)
    if pod is None:
        raise Failed(refused)
    try:
        connection = _Connection(pod.ip, parts.port or ray_cluster.DASHBOARD_PORT, timeout=_TIMEOUT_S)
        headers = {"Authorization": token} if (token := ray_dashboard.bearer()) else {}
        connection.request(method, f"/api/jobs/{path}", None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        raise Failed(refused) from error
    if answer.status != HTTPStatus.OK:
        raise Failed(f"RuntimeError: Request failed with status code {answer.status}: {text}.")
    found: dict[str, Any] = json.loads(text)
    return found
