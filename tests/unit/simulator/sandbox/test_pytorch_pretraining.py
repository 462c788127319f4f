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
from tests.unit.simulator.sandbox.training_pods import Pretraining

LINE = re.compile(
    r"step (\d+): loss (\d+\.\d{4}), gradient \d+\.\d\d, ([\d,]+) tokens/s, MFU (\d\.\d{3})$", re.MULTILINE
)


def losses(log: str) -> dict[str, str]:
    return {step: loss for step, loss, _, _ in LINE.findall(log)}


def at_step(step: int, act: Callable[[Pretraining], None]) -> Callable[[Pretraining], None]:
    """Returns a callback that acts once, when the log has that step."""

    def meanwhile(training: Pretraining) -> None:
        if f"step {step}:" in training.log(training.pod(0)):
            training.meanwhile = lambda _: None
            act(training)

    return meanwhile


@pytest.mark.parametrize(
    ("fields", "first_line"),
    [
        (
            {"options": {"modelSize": "1.3b"}},
            "1.32 billion parameters, ZeRO-1; 8 x 16 sequences, 4 times; from step 0",
        ),
        ({"options": {"modelSize": "13b"}}, "12.86 billion parameters, FSDP; 8 x "),  # exceeds a GPU's memory
    ],
)
def test_trains_to_the_end_at_the_stated_utilization(tmp_path: Path, fields: dict[str, Any], first_line: str) -> None:
    training = Pretraining(tmp_path, **fields)
    ((code, log),) = training.run()
    assert code == 0, log
    assert first_line in log
    assert [step for step, *_ in LINE.findall(log)] == ["10", "20", "30"]
    assert {found for *_, found in LINE.findall(log)} == {"0.470"}
    rows = [json.loads(line) for line in (training.output / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [10, 20, 30]
    kept = sorted(folder.name for folder in (training.output / "checkpoints").iterdir())
    assert kept == ["step-20", "step-30"]


@pytest.mark.parametrize("nodes", [1, 2])
def test_saves_after_sigterm_and_continues_with_the_same_losses(tmp_path: Path, nodes: int) -> None:
    """All nodes stop together after SIGTERM on one."""
    (tmp_path / "broken").mkdir()
    stops = at_step(10, lambda training: training.terminate(nodes - 1))
    training = Pretraining(tmp_path / "broken", nodes=nodes, meanwhile=stops)
    ended = training.run()
    log = ended[0][1]
    assert [code for code, _ in ended] == [143] * nodes, ended
    (step,) = re.findall(r"stopped: step (\d+) is saved", log)
    assert 10 <= int(step) < 30
    assert ("Using network IB" in log) == (nodes == 2)
    (code, more), *_ = training.run()
    assert code == 0, more
    assert f"from step {step}\n" in more
    if nodes == 1:
        (tmp_path / "whole").mkdir()
        ((_, unbroken),) = Pretraining(tmp_path / "whole").run()
        assert {**losses(log), **losses(more)} == losses(unbroken)


def test_two_nodes_without_steps_left_succeed_although_the_first_pod_reports_its_end_late(tmp_path: Path) -> None:
    training = Pretraining(tmp_path, nodes=2, late_s=2)
    assert [code for code, _ in training.run()] == [0, 0]
    again = training.run()
    assert [code for code, _ in again] == [0, 0], again[1][1]
    assert "from step 30\n" in again[0][1]


def test_a_lost_node_ends_the_other_one_and_the_last_checkpoint_stays(tmp_path: Path) -> None:
    training = Pretraining(tmp_path, nodes=2, meanwhile=at_step(20, lambda job: job.processes[job.pod(1)].kill()))
    (code, log), _ = training.run()
    assert code == 1, log
    (code, log), _ = training.run()
    assert code == 0, log
    assert re.search(r"from step (10|20)\n", log)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"batch": 12}, "8 GPUs cannot share a batch of 12 sequences equally: use 16"),
        ({"modelSize": "13b", "sequence": 131072}, "GiB of each GPU, of which 69 are usable: use more GPUs"),
        ({"dataContainer": "tokens"}, "/data has no file *.bin of token numbers"),
        (
            {"modelSize": "350m"},
            "belongs to another training: layers is 12 instead of 24, width is 768 instead of 1024",
        ),
    ],
)
def test_a_wrong_setting_ends_with_a_code_that_forbids_a_retry(
    tmp_path: Path, options: dict[str, Any], error: str
) -> None:
    if "another training" in error:
        Pretraining(tmp_path).run()
    ((code, log),) = Pretraining(tmp_path, options=options).run()
    assert code == 2, log
    assert re.search(f"^error: .*{re.escape(error)}", log, re.MULTILINE)


# --- how agents meet, without a sandbox ---

IPS = ("10.244.0.4", "10.244.0.5")


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Returns a function for the errors of a rank's agent that does not meet the others."""

    def pod(number: int, *, joined: bool, endpoint: str) -> view.Pod:
        document = {"launch": ["none", f"{endpoint}:29400"], "rank": number, "phase": torch_team.WAITING}
        facts = {"node": "n", "phase": "Running", "ip": IPS[number], "hostname": f"olmo-{number}", "subdomain": "olmo"}
        return view.Pod(f"ai/olmo-{number}", {**facts, "state": {"torchrun": document} if joined else {}})

    def ends(rank: int, endpoint: str, joined: set[int]) -> list[str]:
        pods = {each.key: each for each in (pod(n, joined=n in joined, endpoint=endpoint) for n in (0, 1))}
        known = view.View({"n": {"ready": True}}, pods, pods[f"ai/olmo-{rank}"])
        clock, script = itertools.count(), str(tmp_path / "train.py")
        monkeypatch.setattr(view, "load", lambda: known)
        monkeypatch.setattr(view, "load_self", lambda: {"commands": {script: "olmo_train"}, "mounts": []})
        monkeypatch.setattr(view, "publish", lambda *_: None)
        monkeypatch.setattr(view, "program", programs().__getitem__)
        monkeypatch.setattr(time, "monotonic", lambda: next(clock) / 2)
        words = ["--nnodes=2", f"--node-rank={rank}", f"--rdzv-endpoint={endpoint}:29400", "--rdzv-conf=timeout=1"]
        assert torchrun.main([*words, script]) == 1
        return list(itertools.takewhile(lambda line: "ChildFailed" not in line, capsys.readouterr().err.splitlines()))

    return ends


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("endpoint", ["master.olmo", "10.244.0.77", "olmo-1.olmo"])
def test_an_address_of_another_node_times_out(agent: Any, endpoint: str, rank: int) -> None:
    """The first node also connects to its own store by this address."""
    lost = f"The client socket has timed out after 1000ms while trying to connect to ({endpoint}, 29400)."
    assert agent(rank, endpoint, {0, 1}) == [f"torch.distributed.DistNetworkError: {lost}"]


def test_the_first_node_waits_for_the_others(agent: Any) -> None:
    assert agent(0, "olmo-0.olmo", {0}) == [
        "torch.distributed.DistStoreError: Timed out after 2 seconds waiting for clients. 1/2 clients joined."
    ]
