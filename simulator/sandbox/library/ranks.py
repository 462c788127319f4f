"""Runs a program on other nodes for mpirun: the sshd of each pod runs it in the pod's sandbox, once per rank.

mpirun publishes an order (document `mpirun`). Each sshd finds the order in world.json, executes it, and publishes an
answer (document `ranks`). A simulated framework does not train in a rank. There, it only saves its options as a call
(`leave_call`). When all ranks have succeeded, mpirun passes the calls to the framework's module, which simulates the
training.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from simulator.sandbox import PATH
from simulator.sandbox.library import view

ORDER, ANSWER = "mpirun", "ranks"
CALL = "SIMULATOR_RANK_CALL"
"""The environment variable with the path to which a rank saves its call."""
POLL_SECONDS = 0.2
MAX_OUTPUT = 32_000  # characters of a rank's output; world.json has no documents above a megabyte


@dataclass(frozen=True)
class Rank:
    """A process of mpirun. In its pod, it is number `local` of `of_local` processes."""

    pod: view.Pod
    local: int
    of_local: int
    number: int = 0


@dataclass(frozen=True)
class Ended:
    """The end of one rank: exit code, both output streams, and the saved call or None."""

    rank: int
    code: int
    output: str
    call: Mapping[str, Any] | None


class Lost(Exception):
    """A node, or its sshd, disappeared before its ranks ended."""


def run(ranks: Sequence[Rank], program: Sequence[str], variables: Mapping[str, str]) -> list[Ended]:
    """Runs the program for every rank, one at a time on each node. Returns results in rank order. Raises Lost."""
    known = view.load()
    order = f"{known.me.key}-{time.time_ns()}"
    tasks: dict[str, list[dict[str, str]]] = {}
    for rank in ranks:
        tasks.setdefault(rank.pod.key, []).append(_variables(rank, len(ranks), variables))
    view.publish(ORDER, {"id": order, "program": list(program), "workdir": str(Path.cwd()), "tasks": tasks})
    answers: dict[str, list[Ended]] = {}
    if own := tasks.get(known.me.key):
        answers[known.me.key] = _carry_out(own, program, str(Path.cwd()))
    while missing := set(tasks) - set(answers):
        known = view.load()
        for key in missing:
            answer = _answer(known, key, order)
            if answer is not None:
                answers[key] = answer
        time.sleep(POLL_SECONDS)
    return sorted((ended for answer in answers.values() for ended in answer), key=lambda ended: ended.rank)


def serve() -> None:
    """Executes the orders for this pod, one at a time. Never returns. sshd calls it."""
    done: set[str] = set()
    while True:
        time.sleep(POLL_SECONDS)
        try:
            known = view.load()
        except TimeoutError:  # the simulator is restarting
            continue
        for pod in known.pods.values():
            order = pod.published(ORDER)
            if order and order["id"] not in done and pod.namespace == known.me.namespace and pod.running:
                done.add(order["id"])
                if tasks := order["tasks"].get(known.me.key):
                    ended = _carry_out(tasks, order["program"], order["workdir"])
                    view.publish(ANSWER, {"id": order["id"], "ended": [asdict(rank) for rank in ended]})


def leave_call(module: str, call: Mapping[str, Any]) -> bool:
    """Saves a call, which mpirun later passes to the module in `commands`. Returns False without mpirun."""
    place = os.environ.get(CALL)
    if place is None:
        return False
    Path(place).write_text(json.dumps({"module": module, **call}))
    return True


def _variables(rank: Rank, size: int, exported: Mapping[str, str]) -> dict[str, str]:
    """Omits the container's variables, because ssh starts the rank."""
    return {
        "HOME": "/root",
        "PATH": PATH,
        **exported,
        "OMPI_COMM_WORLD_SIZE": str(size),
        "OMPI_COMM_WORLD_RANK": str(rank.number),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(rank.of_local),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(rank.local),
    }


def _answer(known: view.View, key: str, order: str) -> list[Ended] | None:
    pod = known.pods.get(key)
    if pod is None or not pod.running or pod.sshd is None or not known.node_of(pod)["ready"]:
        raise Lost(key.rpartition("/")[2])
    answer = pod.published(ANSWER)
    return [Ended(**rank) for rank in answer["ended"]] if answer and answer["id"] == order else None


def _carry_out(tasks: Sequence[Mapping[str, str]], program: Sequence[str], workdir: str) -> list[Ended]:
    """Runs ranks one by one. Stops after a failure, because mpirun would kill the other ranks."""
    ended: list[Ended] = []
    for variables in tasks:
        ended.append(_run_one(variables, program, workdir))
        if ended[-1].code:
            break
    return ended


def _run_one(variables: Mapping[str, str], program: Sequence[str], workdir: str) -> Ended:
    rank = int(variables["OMPI_COMM_WORLD_RANK"])
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "call.json"
        where = workdir if Path(workdir).is_dir() else "/"
        try:
            done = subprocess.run(
                program,
                env={**variables, CALL: str(place)},
                cwd=where,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
        except OSError as error:
            text = f"mpirun was unable to find or run the executable {program[0]}: {error.strerror}\n"
            return Ended(rank, 1, text, None)
        call = json.loads(place.read_text()) if place.exists() else None
        code = done.returncode if done.returncode >= 0 else 128 - done.returncode  # ended by a signal
        return Ended(rank, code, done.stdout.decode(errors="replace")[-MAX_OUTPUT:], call)
