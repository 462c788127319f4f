"""`torchrun`: one agent on each node. All meet at the first node, which then simulates the training of all ranks."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from simulator.sandbox.library import recipe, view
from simulator.sandbox.library.recipe import Failed
from simulator.sandbox.library.torch_team import (
    DONE,
    FAILED,
    POLL_SECONDS,
    STARTED,
    WAITING,
    Launch,
    Program,
    Team,
    phase,
    said,
)
from simulator.sandbox.library.view import Pod

_TOLD_SECONDS = 30
"""The time for a pod to report its end, on a busy machine."""


def main(arguments: list[str]) -> int:
    """Runs this node's agent. Returns 0 if the program succeeded on all nodes."""
    texts = view.program("torchrun")
    try:
        launch = _launch(arguments, texts)
        name = _module(launch, texts)
    except SystemExit as error:
        return int(error.code or 0)
    program: Program = importlib.import_module(f"simulator.sandbox.commands.{name}")
    team = Team(launch, texts, view.program(name))
    try:
        first = _meet(team, texts)
        team.catch_sigterm()
        prepared = program.prepare(list(launch.options.program[1:]), team)
        team.tell(STARTED)
        if launch.options.node_rank:
            _follow(team, texts, first)
        else:
            while not all(phase(pod) in (STARTED, DONE) for pod in team.check()):
                time.sleep(POLL_SECONDS)
            program.train(prepared, team)
    except Failed as error:
        team.tell(FAILED, code=error.code)
        if str(error):
            print(error, file=sys.stderr)
        rank = launch.options.node_rank * launch.options.nproc_per_node
        print(texts["report"].format(program=launch.options.program[0], rank=rank, code=error.code), file=sys.stderr)
        return 1
    team.tell(DONE)
    return 0


def _launch(arguments: list[str], texts: recipe.Recipe) -> Launch:
    """Reads the command line. Exits with 2 if torchrun would reject it."""
    parser = recipe.parser(texts["options"])
    options = parser.parse_args(arguments)
    least, _, most = options.nnodes.partition(":")
    host, _, port = (options.rdzv_endpoint or f"{options.master_addr}:{options.master_port}").partition(":")
    settings = dict(entry.partition("=")[::2] for entry in options.rdzv_conf.split(",") if entry)
    found = (least, port or str(options.master_port), settings.get("timeout", str(texts["timeout_s"])))
    if wrong := next((text for text in found if not text.isdigit()), ""):
        parser.error(f"invalid int value: '{wrong}'")
    nodes, number, timeout = map(int, found)
    values = {**vars(options), "nodes": nodes, "fixed": (most or least) == least}
    if text := recipe.refusal(texts["fails"], values):
        parser.error(text)
    return Launch(options, nodes, host, number, timeout)


def _module(launch: Launch, texts: recipe.Recipe) -> str:
    """Returns the module of the program. Exits with 2 if the program cannot run."""
    program = launch.options.program[0]
    path = Path(f"{program.replace('.', '/')}.py" if launch.options.module else program).resolve()
    module = view.load_self()["commands"].get(str(path))
    if module is None:
        missing = f"can't open file '{path}': [Errno 2] No such file or directory"
        there = f"simulator: {program} is not a program that it simulates"
        recipe.parser(texts["options"]).error(there if path.exists() else missing)
    return str(module)


def _meet(team: Team, texts: recipe.Recipe) -> str:
    """Waits until all agents have reached the first node, and returns the key of its pod. Raises Failed.

    The first node also connects to its own address, which it retries until the timeout.
    """
    launch, warned = team.launch, False
    team.tell(WAITING)
    deadline = time.monotonic() + launch.timeout
    while time.monotonic() < deadline:
        known = view.load()
        pods, there = team.pods(known), known.resolve(launch.host)
        if len(pods) == launch.nodes and _is_first(pods, there):
            return pods[0].key
        if there is None and not warned and not view.is_address(launch.host):
            print(texts["unresolved"].format(host=launch.host, port=launch.port), file=sys.stderr)
            warned = True
        time.sleep(POLL_SECONDS)
    known = view.load()
    pods = team.pods(known)
    if not _is_first(pods, known.resolve(launch.host)):
        late = texts["timed_out"].format(after=f"{launch.timeout * 1000}ms", host=launch.host, port=launch.port)
        raise Failed(f"torch.distributed.DistNetworkError: {late}")
    if launch.options.node_rank == 0:
        few = texts["too_few"].format(after=launch.timeout + 1, joined=len(pods), wanted=launch.nodes)
        raise Failed(f"torch.distributed.DistStoreError: {few}")
    raise Failed(texts["closed"])


def _is_first(pods: Mapping[int, Pod], there: Pod | None) -> bool:
    return 0 in pods and there is not None and pods[0].key == there.key


def _follow(team: Team, texts: recipe.Recipe, first: str) -> None:
    while True:
        pod = view.load().pods.get(first)
        if pod is not None and (phase(pod) == DONE or pod.facts["phase"] == "Succeeded"):
            return
        if pod is None or not pod.running or phase(pod) == FAILED:
            code = said(pod).get("code", 1) if pod is not None else 1
            raise Failed(texts["lost"].format(rank=0, node=0) if code == 1 else "", code=code)
        try:
            team.check()
        except Failed:
            if _has_ended(first):  # the next iteration reports the result
                continue
            raise
        team.follow(said(pod))
        time.sleep(POLL_SECONDS)


def _has_ended(key: str) -> bool:
    """Reports whether the process ended by itself. Its published state disappears before the pod reports its end."""
    until = time.monotonic() + _TOLD_SECONDS
    while time.monotonic() < until:
        known = view.load()
        pod = known.pods.get(key)
        if pod is None or not known.node_of(pod)["ready"]:
            return False
        if not pod.running or phase(pod):
            return not pod.running or phase(pod) in (FAILED, DONE)  # otherwise it was restarted
        time.sleep(POLL_SECONDS)
    return False
