"""How torchrun's agents meet, and what they say where they do not, in PyTorch's words; without a sandbox."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any

import pytest

from simulator.sandbox.commands import torchrun
from simulator.sandbox.library import torch_agents, view

LOST = (
    "torch.distributed.DistNetworkError: The client socket has timed out after 1000ms while trying to connect to "
    "({}, 29400)."
)
FIRST, SECOND = ("10.244.0.4", "10.244.0.5")


def pod(number: int, *, joined: bool, endpoint: str) -> view.Pod:
    said = {"id": "none", "endpoint": f"{endpoint}:29400", "rank": number, "phase": torch_agents.WAITING}
    facts = {
        "node": "n", "phase": "Running", "ip": (FIRST, SECOND)[number], "hostname": f"olmo-{number}",
        "subdomain": "olmo", "state": {"torchrun": said} if joined else {},
    }  # fmt: skip
    return view.Pod(f"ai/olmo-{number}", facts)


def ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any, *, rank: int, endpoint: str, joined: set[int]
) -> list[str]:
    """What the agent of that rank prints that meets nobody."""
    pods = {
        found.key: found for found in (pod(number, joined=number in joined, endpoint=endpoint) for number in (0, 1))
    }
    known = view.View({"n": {"ready": True}}, pods, pods[f"ai/olmo-{rank}"])
    script = tmp_path / "train.py"
    monkeypatch.setattr(view, "load", lambda: known)
    monkeypatch.setattr(
        view, "load_self", lambda: json.loads(json.dumps({"commands": {str(script): "olmo_train"}, "mounts": []}))
    )
    monkeypatch.setattr(view, "tell", lambda *_: None)
    clock = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: next(clock) / 2)
    arguments = ["--nnodes=2", f"--node-rank={rank}", f"--rdzv-endpoint={endpoint}:29400", "--rdzv-conf=timeout=1"]
    assert torchrun.main([*arguments, str(script)]) == 1
    lines = str(capsys.readouterr().err).splitlines()
    return lines[: next(number for number, line in enumerate(lines) if line.endswith("ChildFailedError:"))]


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    return lambda **how: ends(monkeypatch, tmp_path, capsys, **how)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_name_that_is_not_known_is_tried_until_time_is_up(agent: Any, rank: int) -> None:
    """By the first node too, which goes to its own store by this address."""
    gai = "gai error: -2 - Name or service not known"
    assert agent(rank=rank, endpoint="master.olmo", joined={0, 1}) == [
        f"[W socket.cpp] [c10d] The IPv6 network addresses of (master.olmo, 29400) cannot be retrieved ({gai}).",
        LOST.format("master.olmo"),
    ]


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("endpoint", ["10.244.0.77", SECOND, "olmo-1.olmo"])
def test_an_address_where_nothing_listens(agent: Any, rank: int, endpoint: str) -> None:
    """Nothing is there, or another node is: what is refused is tried again too."""
    assert agent(rank=rank, endpoint=endpoint, joined={0, 1}) == [LOST.format(endpoint)]


def test_a_first_node_that_is_reached_waits_for_the_others(agent: Any) -> None:
    assert agent(rank=0, endpoint="olmo-0.olmo", joined={0}) == [
        "torch.distributed.DistStoreError: Timed out after 2 seconds waiting for clients. 1/2 clients joined."
    ]
