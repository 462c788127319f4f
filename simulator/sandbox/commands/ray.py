"""`ray start`, `ray health-check` and `ray job` for KubeRay's pods. `job` uses real HTTP."""

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

from simulator.sandbox.library import http_api, ray_cluster, ray_jobs, recipe, uplink_client, view
from simulator.sandbox.library.recipe import Failed, Recipe, Values

USAGE_CODE = 2
LOST_AFTER_S = 60
"""If a node's head does not answer for this time, the node ends (gcs_rpc_server_reconnect_timeout_s)."""
DASHBOARD_PORT, AGENT_PORT = 8265, 52365
_POLL_S, _TIMEOUT_S = 0.5, 30.0


class Unanswered(Failed):
    """The head's node is gone: requests get no answer, and connections stay open."""


class _Connection(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = uplink_client.connect(self.host, self.port, _TIMEOUT_S)


def main(arguments: list[str]) -> int:
    program, commands = view.program("ray"), {"start": _start, "health-check": _head}
    words = arguments[1:] if arguments[:1] == ["job"] else arguments
    command = words[0] if words else ""
    if command not in (program["job_commands"] if words is not arguments else commands):
        print("Error: No such command; the simulator's ray has start, health-check and job", file=sys.stderr)
        return USAGE_CODE
    parser = recipe.parser(program[command])
    chosen = parser.parse_args(words[1:])
    if text := Values(program, vars(chosen)).error():
        parser.error(text)
    try:
        if command in commands:
            commands[command](chosen, program)
        else:
            _job(command, chosen, program)
    except Failed as error:
        print(error, file=sys.stderr)
        return error.code
    return 0


def _start(chosen: Namespace, program: Recipe) -> None:
    """Runs a node. Raises Failed when the head does not answer any more."""
    known = view.load()
    head = known.me.key if chosen.head else _head(chosen, program)
    print(program["started"].format(ip=known.me.ip))
    http_api.serve("0.0.0.0", AGENT_PORT, ray_jobs.health)  # noqa: S104 - of the sandbox's own network
    if chosen.head:
        dashboard = ray_jobs.Dashboard(program["messages"])
        http_api.serve("0.0.0.0", DASHBOARD_PORT, dashboard.answer)  # noqa: S104 - likewise
    ray_cluster.join(head)
    seen = time.monotonic()
    while time.monotonic() - seen < LOST_AFTER_S:
        time.sleep(_POLL_S)
        known = view.load()
        pod = known.pods.get(head)
        if pod and (pod.key == known.me.key or ray_cluster.answers(known, pod)):
            seen = time.monotonic()
    raise Failed(program["lost"])


def _head(chosen: Namespace, program: Recipe) -> str:
    if head := ray_cluster.head_at(view.load(), str(chosen.address)):
        return head.key
    raise Failed(program["no_head"].format(address=chosen.address))


def _job(command: str, chosen: Namespace, program: Recipe) -> None:
    """Runs a `ray job` command. A failed job is not an error."""
    print(f"Job submission server address: {chosen.address}")
    if command == "submit":
        body = {"entrypoint": shlex.join(chosen.entrypoint), "submission_id": chosen.submission_id or None}
        name = _ask(chosen.address, program, "POST", "", body)["submission_id"]
        _print_status(program, name, {"status": "SUBMITTED"})
        return
    if command == "logs":
        _print_log(chosen, program)
    if command == "status" or chosen.follow:
        _print_status(program, chosen.job_id, _ask(chosen.address, program, "GET", chosen.job_id))


def _print_log(chosen: Namespace, program: Recipe) -> None:
    """Prints a job's log. If the head does not answer, waits forever, like the real command's WebSocket."""
    printed, ended = 0, False
    while not ended:
        try:
            details = _ask(chosen.address, program, "GET", chosen.job_id)
            text = str(_ask(chosen.address, program, "GET", f"{chosen.job_id}/logs")["logs"])
        except Unanswered:
            time.sleep(_POLL_S)
            continue
        print(text[printed:], end="", flush=True)
        printed = len(text)
        ended = details["status"] in ray_jobs.ENDED or not chosen.follow
        time.sleep(0 if ended else _POLL_S)


def _print_status(program: Recipe, name: str, details: dict[str, Any]) -> None:
    print(program["statuses"][details["status"]].format_map({"rule": "-" * 40, "name": name, **details}))


def _ask(address: str, program: Recipe, method: str, path: str, body: Any = None) -> dict[str, Any]:
    parts, known = urlsplit(address), view.load()
    pod = known.resolve(parts.hostname or "")
    refused = program["no_dashboard"].format(address=address)
    if pod is None:
        raise Failed(refused)
    if pod.running and not ray_cluster.answers(known, pod):
        raise Unanswered(refused)
    try:
        connection = _Connection(pod.ip, parts.port or DASHBOARD_PORT, timeout=_TIMEOUT_S)
        headers = {"Authorization": token} if (token := ray_jobs.bearer()) else {}
        connection.request(method, f"/api/jobs/{path}", None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        raise Failed(refused) from error
    if answer.status != HTTPStatus.OK:
        raise Failed(f"RuntimeError: Request failed with status code {answer.status}: {text}.")
    found: dict[str, Any] = json.loads(text)
    return found
