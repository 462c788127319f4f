"""`ray`, as KubeRay's pods call it: `start`, `health-check` and `job`.

Source: Ray 2.60.0, scripts/scripts.py and dashboard/modules/job/cli.py.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from typing import NoReturn

from simulator.sandbox.library import ray_cluster, ray_dashboard, view
from simulator.sandbox.library.ray_client import ClientError, JobClient, Unanswered

USAGE_CODE = 2
_POLL_S = 0.5
_CLICK_SAYS = "Error: "
_START = ("address", "dashboard-agent-listen-port", "dashboard-host", "memory", "metrics-export-port", "num-cpus")
"""What KubeRay gives `ray start`, and our manifests, that has a value."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{_CLICK_SAYS}{message} (the simulator's ray knows a part of the options)", file=sys.stderr)
        raise SystemExit(USAGE_CODE)


def main(arguments: list[str]) -> int:
    """The exit codes are those of the real one."""
    commands: Mapping[str, Callable[[list[str]], int]] = {"start": _start, "health-check": _health_check, "job": _job}
    if not arguments or arguments[0] not in commands:
        print(f"{_CLICK_SAYS}No such command; the simulator's ray has {', '.join(commands)}", file=sys.stderr)
        return USAGE_CODE
    try:
        return commands[arguments[0]](arguments[1:])
    except ClientError as error:
        print(error, file=sys.stderr)
        return 1


def _start(arguments: list[str]) -> int:
    parser = _Parser(prog="ray start", allow_abbrev=False)
    for name in (*_START, "num-gpus", "object-store-memory", "port", "node-ip-address", "labels", "resources"):
        parser.add_argument(f"--{name}")
    for name in ("head", "block", "no-monitor"):
        parser.add_argument(f"--{name}", action="store_true")
    chosen = parser.parse_args(arguments)
    if not chosen.block:
        parser.error("without --block it would leave processes behind, which the simulator does not play")
    known = view.load()
    head = known.me.key if chosen.head else _head(str(chosen.address))
    if head is None:
        print(f"RuntimeError: Failed to connect to GCS at address={chosen.address}.", file=sys.stderr)
        return 1
    print(f"Local node IP: {known.me.ip}\n\n{'-' * 20}\nRay runtime started.\n{'-' * 20}\n")
    print("--block\n  This command will now block forever until terminated by a signal.")
    if chosen.head:
        ray_dashboard.serve_head()
    else:
        ray_dashboard.serve_node()
    ray_cluster.join(head)
    return _stay(head)


def _head(address: str) -> str | None:
    head = ray_cluster.head_at(view.load(), address)
    return head.key if head else None


def _stay(head: str) -> int:
    """While its head answers; the head itself, until it is ended."""
    seen = time.monotonic()
    while time.monotonic() - seen < ray_cluster.LOST_AFTER_S:
        time.sleep(_POLL_S)
        known = view.load()
        pod = known.pods.get(head)
        if pod and (pod.key == known.me.key or ray_cluster.answers(known, pod)):
            seen = time.monotonic()
    print("Some Ray subprocesses exited unexpectedly:\n  raylet [exit code=1]", file=sys.stderr)
    return 1


def _health_check(arguments: list[str]) -> int:
    parser = _Parser(prog="ray health-check", allow_abbrev=False)
    parser.add_argument("--address", required=True)
    return 0 if _head(parser.parse_args(arguments).address) else 1


def _job(arguments: list[str]) -> int:
    parser = _Parser(prog="ray job", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("submit", "status", "logs", "stop"):
        command = commands.add_parser(name, allow_abbrev=False)
        command.add_argument("--address", required=True)
        if name == "submit":
            command.add_argument("--submission-id", default="")
            command.add_argument("--no-wait", action="store_true", required=True)
            command.add_argument("entrypoint", nargs="+")
            continue
        command.add_argument("job_id")
        if name == "logs":
            command.add_argument("-f", "--follow", action="store_true")
    chosen = parser.parse_args(arguments)
    client = JobClient(chosen.address)
    print(f"Job submission server address: {chosen.address}")
    match chosen.command:
        case "submit":
            name = client.submit(shlex.join(chosen.entrypoint), chosen.submission_id)
            _loudly(f"Job '{name}' submitted successfully")
        case "status":
            _tell_status(client, chosen.job_id)
        case "stop":
            client.stop(chosen.job_id)
        case _:
            _tell_log(client, chosen.job_id, follow=chosen.follow)
    return 0


def _tell_log(client: JobClient, name: str, *, follow: bool) -> None:
    """How the job fares is no exit code of this command's. Without an answer it waits for ever, as on a WebSocket."""
    told = 0
    while True:
        try:
            ended, text = client.details(name)["status"] in ray_dashboard.ENDED, client.log(name)
        except Unanswered:
            time.sleep(_POLL_S)
            continue
        print(text[told:], end="", flush=True)
        told = len(text)
        if ended or not follow:
            break
        time.sleep(_POLL_S)
    if follow:
        _tell_status(client, name)


def _tell_status(client: JobClient, name: str) -> None:
    found = client.details(name)
    match found["status"]:
        case "SUCCEEDED":
            _loudly(f"Job '{name}' succeeded")
        case "STOPPED":
            print(f"Job '{name}' was stopped")
        case "FAILED":
            _loudly(f"Job '{name}' failed")
            print(f"Status message: {found['message']}")
        case status:
            print(f"Status for job '{name}': {status}\nStatus message: {found['message']}")


def _loudly(text: str) -> None:
    rule = "-" * len(text)
    print(f"\n{rule}\n{text}\n{rule}\n")
