"""Thirty kills at random moments, repeatable by seed: the same command then converges.

Only `make kills` runs them, for about an hour on two cores. Up and down take turns on one checkout.
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.checkout import Checkout, clients, kill, processes
from tests.support.waiting import eventually

pytestmark = [pytest.mark.kills, pytest.mark.timeout(1800)]
KILLS = 30
STATE = Path("state/.pulumi/stacks/ai-on-aks/dev.json")
VICTIMS = ("engine", "plugin", "kube-apiserver", "etcd")
ENGINE = "pulumi"
SHARES = {"up": (0.05, 0.95), "down": (0.05, 0.9)}
"""Ranges for the share of created resources (up) or of deleted objects (down) at the kill. Later, `down` has deleted
the API server.
"""


@dataclass(frozen=True)
class Kill:
    """The command's progress at the kill is from 0 to 1."""

    command: str
    victim: str
    share: float

    @classmethod
    def of(cls, seed: int) -> Kill:
        chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
        command = "up" if seed % 2 == 0 else "down"
        return cls(command, VICTIMS[(seed // 2 + seed) % len(VICTIMS)], chance.uniform(*SHARES[command]))

    def __str__(self) -> str:
        return f"{self.victim}-at-{self.share:.2f}-of-{self.command}"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = Checkout.copy(tmp_path_factory.mktemp("kills"))
    yield made
    kill(clients(made.home))
    made.make("clean")


@pytest.fixture(scope="module")
def sizes(checkout: Checkout) -> dict[str, int]:
    checkout.make("up")
    found = {command: counted(checkout, command) for command in SHARES}
    checkout.make("down")
    return found


def counted(checkout: Checkout, command: str) -> int:
    found = resources(checkout)
    return len(found) if command == "up" else sum(each["type"].startswith("kubernetes:") for each in found)


def resources(checkout: Checkout) -> list[dict[str, Any]]:
    try:
        latest = json.loads((checkout.home / STATE).read_text())["checkpoint"]["latest"] or {}
    except (FileNotFoundError, ValueError):  # not completely written yet
        return []
    found: list[dict[str, Any]] = latest.get("resources") or []
    return found


def victims(checkout: Checkout, victim: str) -> list[int]:
    """`plugin` means all plugins, `engine` the CLI."""
    if victim not in ("engine", "plugin"):
        return processes(checkout.home, victim)
    return [pid for pid in clients(checkout.home) if is_engine(pid) == (victim == "engine")]


def is_engine(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name == ENGINE
    except OSError:  # already ended
        return False


def far_enough(checkout: Checkout, planned: Kill, size: int) -> Callable[[], bool]:
    wanted = int(planned.share * size)

    def reached() -> bool:
        found = counted(checkout, planned.command)
        done = found if planned.command == "up" else size - found
        return done >= wanted and bool(victims(checkout, planned.victim))

    return reached


@pytest.mark.parametrize("seed", range(KILLS), ids=lambda seed: f"{seed}-{Kill.of(seed)}")
def test_the_same_command_converges(checkout: Checkout, sizes: dict[str, int], seed: int) -> None:
    planned = Kill.of(seed)
    command = checkout.begin(planned.command)
    try:
        moment = far_enough(checkout, planned, sizes[planned.command])
        eventually(lambda: moment() or command.poll() is not None, f"{planned} comes", seconds=600)
        killed = victims(checkout, planned.victim)
        kill(killed)
        output, _ = command.communicate(timeout=900)
    finally:
        if command.poll() is None:
            os.killpg(command.pid, signal.SIGKILL)
    assert killed, f"{planned.command} ended before there was a process to kill: {output}"
    while left := clients(checkout.home):  # a killed engine's children
        kill(left)
    checkout.make(planned.command)
    if planned.command == "up":
        checkout.inside("pulumi preview --stack dev --non-interactive --expect-no-changes")
    else:
        assert resources(checkout) == []
