"""The pre-training's real script in real sandboxes: it runs, is told to stop, is killed, and goes on where it was."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from simulator.sandbox import sandbox
from tests.support.pools import A100
from tests.units.simulator.sandbox.pretraining import Pretraining, Processes

LINE = re.compile(
    r"step (\d+): loss (\d+\.\d{4}), gradient \d+\.\d\d, ([\d,]+) tokens/s, MFU (\d\.\d{3})$", re.MULTILINE
)


@pytest.fixture(scope="module", autouse=True)
def _needs_sandbox() -> None:
    assert sandbox.available() is None


def losses(log: str) -> dict[str, str]:
    return {step: loss for step, loss, _, _ in LINE.findall(log)}


def test_it_trains_to_its_end_and_tells_how_fast_in_the_trainers_words(tmp_path: Path) -> None:
    training = Pretraining(tmp_path, options={"modelSize": "1.3b"})
    ((code, log),) = training.run()
    assert code == 0, log
    assert "1.32 billion parameters, ZeRO-1; 8 x 16 sequences, 4 times; from step 0" in log
    found = LINE.findall(log)
    assert [step for step, *_ in found] == ["10", "20", "30"]
    assert {mfu for *_, mfu in found} == {"0.612"}, "as measured on an H100"
    assert "by docs/performance.md\n" in log, "no estimate"
    rows = [json.loads(line) for line in (training.output / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [10, 20, 30]
    kept = sorted(folder.name for folder in (training.output / "checkpoints").iterdir())
    assert kept == ["step-20", "step-30"]


def test_what_was_not_measured_is_said_to_be_an_estimate(tmp_path: Path) -> None:
    ((_, log),) = Pretraining(tmp_path, sku=A100).run()
    assert "that of 0.125 billion parameters on an H200, by docs/performance.md; est. for 0.13 on A100, ZeRO-1\n" in log
    assert {mfu for *_, mfu in LINE.findall(log)} == {"0.558"}


def test_a_model_that_fits_no_gpu_whole_is_shared_by_all_which_is_slower(tmp_path: Path) -> None:
    ((_, log),) = Pretraining(tmp_path, options={"modelSize": "13b"}).run()
    assert "12.86 billion parameters, FSDP; 8 x " in log
    assert "est. for 12.86 on H100, FSDP\n" in log
    assert {mfu for *_, mfu in LINE.findall(log)} == {"0.587"}, "0.94 of 0.624"


def test_told_to_stop_it_saves_and_goes_on_from_there_to_the_same_losses(tmp_path: Path) -> None:
    for folder in ("whole", "broken"):
        (tmp_path / folder).mkdir()
    ((_, unbroken),) = Pretraining(tmp_path / "whole").run()

    def stop_once(training: Pretraining, _: Processes) -> None:
        if "step 10:" in training.log(0) and training.meanwhile is stop_once:
            training.meanwhile = lambda *_: None
            training.terminate(0)

    training = Pretraining(tmp_path / "broken", meanwhile=stop_once)
    ((code, log),) = training.run()
    assert code == 143, log
    (step,) = re.findall(r"told to stop: step (\d+) is saved", log)
    assert 10 <= int(step) < 30
    ((code, more),) = training.run()
    assert code == 0, more
    assert f"from step {step}\n" in more
    assert {**losses(log), **losses(more)} == losses(unbroken)


def test_two_nodes_train_as_one_and_stop_together(tmp_path: Path) -> None:
    def stop_the_second(training: Pretraining, _: Processes) -> None:
        if "step 10:" in training.log(0) and training.meanwhile is stop_the_second:
            training.meanwhile = lambda *_: None
            training.terminate(1)

    training = Pretraining(tmp_path, nodes=2, meanwhile=stop_the_second)
    first, second = training.run()
    assert (first[0], second[0]) == (143, 143), first[1] + second[1]
    assert "16 x 16 sequences, 1 times" in first[1]
    assert "told to stop" in first[1]
    assert "Using network IB" in first[1]


def test_two_nodes_with_nothing_left_to_do_end_well_though_the_first_pods_end_is_told_late(tmp_path: Path) -> None:
    training = Pretraining(tmp_path, nodes=2, late_s=2)
    assert [code for code, _ in training.run()] == [0, 0]
    again = training.run()
    assert [code for code, _ in again] == [0, 0], again[1][1]
    assert "from step 30\n" in again[0][1]


def test_a_node_that_is_gone_ends_the_other_and_the_last_checkpoint_is_what_is_left(tmp_path: Path) -> None:
    def lose_the_second(training: Pretraining, processes: Processes) -> None:
        if "step 20:" in training.log(0):
            processes[1].kill()

    training = Pretraining(tmp_path, nodes=2, meanwhile=lose_the_second)
    (code, log), _ = training.run()
    assert code == 1, log
    training.meanwhile = lambda *_: None
    (code, log), _ = training.run()
    assert code == 0, log
    assert re.search(r"from step (10|20)\n", log)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"batch": 12}, "a batch of 12 sequences does not divide among 8 GPUs: take 16"),
        ({"modelSize": "13b", "sequence": 131072}, "GiB of each GPU, which has 69: take more GPUs, or fewer layers"),
        ({"dataContainer": "tokens"}, "/data has no file *.bin of token numbers"),
    ],
)
def test_what_cannot_be_ends_by_a_code_that_no_other_try_mends(tmp_path: Path, options: object, told: str) -> None:
    ((code, log),) = Pretraining(tmp_path, options=options).run()  # type: ignore[arg-type]
    assert code == 2, log
    assert re.search(f"^error: .*{re.escape(told)}", log, re.MULTILINE)


def test_a_checkpoint_of_another_model_is_not_taken_for_its_own(tmp_path: Path) -> None:
    Pretraining(tmp_path).run()
    ((code, log),) = Pretraining(tmp_path, options={"modelSize": "350m"}).run()
    assert code == 2, log
    assert "is of another training: layers 12 and not 24, width 768 and not 1024" in log
