"""Our pre-training under torchrun: real scripts in real sandboxes, and nodes that meet, stop, or go away."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.sandbox.commands import torchrun
from simulator.sandbox.images import programs
from simulator.sandbox.library import torch_team, view
from tests.support.pools import A100
from tests.unit.simulator.sandbox.training_pods import Pretraining

LINE = re.compile(
    r"step (\d+): loss (\d+\.\d{4}), gradient \d+\.\d\d, ([\d,]+) tokens/s, MFU (\d\.\d{3})$", re.MULTILINE
)


def losses(log: str) -> dict[str, str]:
    return {step: loss for step, loss, _, _ in LINE.findall(log)}


def once(step: int, act: Callable[[Pretraining], None]) -> Callable[[Pretraining], None]:
    """Acts as soon as the log has that step."""

    def meanwhile(training: Pretraining) -> None:
        if f"step {step}:" in training.log(training.pod(0)):
            training.meanwhile = lambda _: None
            act(training)

    return meanwhile


@pytest.mark.parametrize(
    ("fields", "begins", "source", "mfu"),
    [
        (
            {"options": {"modelSize": "1.3b"}},
            "1.32 billion parameters, ZeRO-1; 8 x 16 sequences, 4 times; from step 0",
            "by docs/performance.md\n",  # measured
            "0.612",
        ),
        (
            {"sku": A100},
            "0.13 billion parameters, ZeRO-1",
            "that of 0.125 billion parameters on an H200, by docs/performance.md; est. for 0.13 on A100, ZeRO-1\n",
            "0.558",
        ),
        (
            {"options": {"modelSize": "13b"}},  # fits no GPU whole
            "12.86 billion parameters, FSDP; 8 x ",
            "est. for 12.86 on H100, FSDP\n",
            "0.587",  # 0.94 of 0.624
        ),
    ],
)
def test_it_trains_to_its_end_in_the_trainers_words_as_fast_as_measured_or_estimated(
    tmp_path: Path, fields: dict[str, Any], begins: str, source: str, mfu: str
) -> None:
    training = Pretraining(tmp_path, **fields)
    ((code, log),) = training.run()
    assert code == 0, log
    assert begins in log
    assert source in log
    assert [step for step, *_ in LINE.findall(log)] == ["10", "20", "30"]
    assert {found for *_, found in LINE.findall(log)} == {mfu}
    rows = [json.loads(line) for line in (training.output / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [10, 20, 30]
    kept = sorted(folder.name for folder in (training.output / "checkpoints").iterdir())
    assert kept == ["step-20", "step-30"]


@pytest.mark.parametrize("nodes", [1, 2])
def test_told_to_stop_it_saves_and_goes_on_from_there_to_the_same_losses(tmp_path: Path, nodes: int) -> None:
    """Whichever node is told: all stop together."""
    (tmp_path / "broken").mkdir()
    stops = once(10, lambda training: training.terminate(nodes - 1))
    training = Pretraining(tmp_path / "broken", nodes=nodes, meanwhile=stops)
    ended = training.run()
    log = ended[0][1]
    assert [code for code, _ in ended] == [143] * nodes, ended
    (step,) = re.findall(r"told to stop: step (\d+) is saved", log)
    assert 10 <= int(step) < 30
    assert ("Using network IB" in log) == (nodes == 2)
    (code, more), *_ = training.run()
    assert code == 0, more
    assert f"from step {step}\n" in more
    if nodes == 1:
        (tmp_path / "whole").mkdir()
        ((_, unbroken),) = Pretraining(tmp_path / "whole").run()
        assert {**losses(log), **losses(more)} == losses(unbroken)


def test_two_nodes_with_nothing_left_to_do_end_well_though_the_first_pods_end_is_told_late(tmp_path: Path) -> None:
    training = Pretraining(tmp_path, nodes=2, late_s=2)
    assert [code for code, _ in training.run()] == [0, 0]
    again = training.run()
    assert [code for code, _ in again] == [0, 0], again[1][1]
    assert "from step 30\n" in again[0][1]


def test_a_node_that_is_gone_ends_the_other_and_the_last_checkpoint_is_what_is_left(tmp_path: Path) -> None:
    training = Pretraining(tmp_path, nodes=2, meanwhile=once(20, lambda job: job.processes[job.pod(1)].kill()))
    (code, log), _ = training.run()
    assert code == 1, log
    (code, log), _ = training.run()
    assert code == 0, log
    assert re.search(r"from step (10|20)\n", log)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"batch": 12}, "a batch of 12 sequences does not divide among 8 GPUs: take 16"),
        ({"modelSize": "13b", "sequence": 131072}, "GiB of each GPU, which has 69: take more GPUs, or fewer layers"),
        ({"dataContainer": "tokens"}, "/data has no file *.bin of token numbers"),
        ({"modelSize": "350m"}, "is of another training: layers 12 and not 24, width 768 and not 1024"),
    ],
)
def test_what_cannot_be_ends_by_a_code_that_no_other_try_mends(
    tmp_path: Path, options: dict[str, Any], told: str
) -> None:
    if "another training" in told:
        Pretraining(tmp_path).run()
    ((code, log),) = Pretraining(tmp_path, options=options).run()
    assert code == 2, log
    assert re.search(f"^error: .*{re.escape(told)}", log, re.MULTILINE)


# --- how agents meet, in PyTorch's words; without a sandbox ---

IPS = ("10.244.0.4", "10.244.0.5")


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Returns what the agent of a rank prints that meets nobody."""

    def pod(number: int, *, joined: bool, endpoint: str) -> view.Pod:
        said = {"id": "none", "endpoint": f"{endpoint}:29400", "rank": number, "phase": torch_team.WAITING}
        facts = {"node": "n", "phase": "Running", "ip": IPS[number], "hostname": f"olmo-{number}", "subdomain": "olmo"}
        return view.Pod(f"ai/olmo-{number}", {**facts, "state": {"torchrun": said} if joined else {}})

    def ends(rank: int, endpoint: str, joined: set[int]) -> list[str]:
        pods = {each.key: each for each in (pod(n, joined=n in joined, endpoint=endpoint) for n in (0, 1))}
        known = view.View({"n": {"ready": True}}, pods, pods[f"ai/olmo-{rank}"])
        clock, script = itertools.count(), str(tmp_path / "train.py")
        monkeypatch.setattr(view, "load", lambda: known)
        monkeypatch.setattr(view, "load_self", lambda: {"commands": {script: "olmo_train"}, "mounts": []})
        monkeypatch.setattr(view, "tell", lambda *_: None)
        monkeypatch.setattr(view, "program", programs().__getitem__)
        monkeypatch.setattr(time, "monotonic", lambda: next(clock) / 2)
        words = ["--nnodes=2", f"--node-rank={rank}", f"--rdzv-endpoint={endpoint}:29400", "--rdzv-conf=timeout=1"]
        assert torchrun.main([*words, script]) == 1
        return list(itertools.takewhile(lambda line: "ChildFailed" not in line, capsys.readouterr().err.splitlines()))

    return ends


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("endpoint", ["master.olmo", "10.244.0.77", IPS[1], "olmo-1.olmo"])
def test_an_address_that_does_not_lead_to_the_first_node_is_tried_until_time_is_up(
    agent: Any, endpoint: str, rank: int
) -> None:
    """By the first node too, which goes to its own store by this address. c10d warns of a name that is not known."""
    gai = "gai error: -2 - Name or service not known"
    warned = f"[W socket.cpp] [c10d] The IPv6 network addresses of ({endpoint}, 29400) cannot be retrieved ({gai})."
    lost = f"The client socket has timed out after 1000ms while trying to connect to ({endpoint}, 29400)."
    expected = [warned] if endpoint == "master.olmo" else []
    assert agent(rank, endpoint, {0, 1}) == [*expected, f"torch.distributed.DistNetworkError: {lost}"]


def test_a_first_node_that_is_reached_waits_for_the_others(agent: Any) -> None:
    assert agent(0, "olmo-0.olmo", {0}) == [
        "torch.distributed.DistStoreError: Timed out after 2 seconds waiting for clients. 1/2 clients joined."
    ]
