"""The simulated metaseq-train: what it makes of the options that ranks are given, without a sandbox."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.sandbox.commands import metaseq
from simulator.sandbox.library import metaseq_log, metaseq_options, nccl, nccl_log, ranks, view
from simulator.sandbox.library.metaseq_model import Model
from simulator.world import performance
from simulator.world.faults import Fault, new_fault
from tests.units.simulator.sandbox.job import node_name
from tests.units.simulator.sandbox.metaseq import H100, Launch
from workloads.metaseq.manifests import training_arguments
from workloads.metaseq.options import MetaseqOptions
from workloads.metaseq.plan import bytes_per_gpu, plan
from workloads.metaseq.sizes import models

Runner = Callable[[Launch], tuple[int, int, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    """First failed rank, exit code and log of a launch, without its pauses."""

    def simulate(launch: Launch) -> tuple[int, int, str]:
        monkeypatch.setattr(view, "load", launch.world)
        monkeypatch.setattr(view, "numbers", performance.numbers)
        for module in (metaseq, nccl_log, nccl):
            monkeypatch.setattr(module, "pause", lambda seconds: None)
        variables = {"NCCL_DEBUG": "WARN", **launch.variables}
        rank, code = metaseq.simulate(launch.calls(), variables, nccl_log.Log(variables))
        return rank, code, capsys.readouterr().out

    return simulate


def statistics(log: str) -> list[dict[str, Any]]:
    return [json.loads(found) for found in re.findall(r"\| train_inner \| (\{.*\})", log)]


def speed(log: str) -> float:
    return float(statistics(log)[-1]["wps"])


@pytest.mark.parametrize("size", models().sizes)
def test_every_size_trains_with_the_options_that_it_is_given(run: Runner, size: str) -> None:
    launch = Launch(size, nodes=8 if size == "175b" else 2)
    _, code, log = run(launch)
    assert code == 0, log
    assert len(statistics(log)) == 2
    assert f"max_update: {launch.updates}" in log
    assert float(statistics(log)[-1]["bsz"]) == models().sequences(models().sizes[size])


@pytest.mark.parametrize("size", models().sizes)
def test_it_needs_the_memory_that_was_planned(size: str) -> None:
    nodes = 8 if size == "175b" else 2
    launch = Launch(size, nodes=nodes)
    options = metaseq_options.parse(launch.words)
    found = metaseq._model(options, 8 * nodes).memory()
    assert found == pytest.approx(
        bytes_per_gpu(models().sizes[size], gpus=8 * nodes, micro_batch=launch.plan.micro_batch)
    )


def test_a_healthy_training_reaches_the_stated_utilisation(run: Runner) -> None:
    launch = Launch("13b")
    _, _, log = run(launch)
    peak = 16 * H100.gpu_bf16_tflops * 1e12
    assert speed(log) * launch.plan.flops_per_token / peak == pytest.approx(
        performance.numbers()["training_mfu"], rel=1e-4
    )


def _other_option(launch: Launch, *words: str) -> None:
    launch.extra += words


FAILURES: list[tuple[str, Callable[[Launch], object], str, int]] = [
    ("micro-batch", lambda on: _other_option(on, "--batch-size", "16"), "OutOfMemoryError: CUDA out of memory", 0),
    (
        "checkpointing",
        lambda on: _other_option(on, "--checkpoint-activations"),
        "Cannot set --checkpoint-activations",
        0,
    ),
    ("dropout", lambda on: _other_option(on, "--dropout", "0.1"), "dropout with seq_parallel", 0),
    ("parallel of one", lambda on: _other_option(on, "--model-parallel-size", "1"), "greater than 1", 0),
    ("parallel of three", lambda on: _other_option(on, "--model-parallel-size", "3"), "16 is not divisible by 3", 0),
    ("heads", lambda on: _other_option(on, "--decoder-attention-heads", "12"), "12 is not divisible by 8", 0),
    ("larger world", lambda on: [own.update(size=32) for own in on.own], "16/32 clients joined", 0),
    ("smaller world", lambda on: [own.update(size=8) for own in on.own], "rank 8 is not below the world size 8", 8),
    ("same rank", lambda on: on.own[9].update(rank=1), "rank 1 is taken already", 1),
    ("same GPU", lambda on: on.own[9].update(local=0), "Duplicate GPU detected : rank 9 and rank 8", 9),
    ("no such GPU", lambda on: on.own[9].update(local=9), "CUDA error: invalid device ordinal", 9),
    (
        "other options",
        lambda on: on.own[9].update(head="tcp://w-0.w:1"),
        "other options than rank 0: distributed_init",
        9,
    ),
    ("no method", lambda on: [own.update(head="env://") for own in on.own], "'env://' is not simulated", 0),
    ("lost GPU", lambda on: on.faults.append(new_fault("gpu", node_name(1), "6")), "unspecified launch failure", 14),
    ("partitions", lambda on: on.faults.append(new_fault("partition", node_name(1))), "NCCL error in", 0),
]


@pytest.mark.parametrize(
    ("damage", "expected", "rank"), [case[1:] for case in FAILURES], ids=[case[0] for case in FAILURES]
)
def test_what_ends_a_training(run: Runner, damage: Callable[[Launch], object], expected: str, rank: int) -> None:
    launch = Launch()
    damage(launch)
    first, code, log = run(launch)
    assert (first, code) == (rank, 1), log
    assert expected in log
    assert not statistics(log)


@pytest.mark.parametrize(("host", "known"), [("w-7.w", False), ("w-1.w", True), ("10.244.0.77", True)])
def test_an_address_that_does_not_lead_to_rank_0_is_tried_until_time_is_up(run: Runner, host: str, known: bool) -> None:
    """In the words of PyTorch 2.1: where nothing listens, c10d warns of nothing before."""
    launch = Launch()
    for own in launch.own:
        own.update(head=f"tcp://{host}:29400")
    first, code, log = run(launch)
    gai = "gai error: -2 - Name or service not known"
    warned = f"[W socket.cpp] [c10d] The IPv6 network addresses of ({host}, 29400) cannot be retrieved ({gai})."
    assert (first, code) == (0, 1)
    assert log.splitlines() == [
        *([] if known else [warned]),
        "Traceback (most recent call last):",
        f"TimeoutError: The client socket has timed out after 1800s while trying to connect to ({host}, 29400).",
    ]


SLOWER: list[tuple[str, Callable[[Launch], object]]] = [
    ("a slow link", lambda on: on.faults.append(new_fault("link", node_name(1), "mlx5_3", 100))),
    ("no topology file", lambda on: on.variables.pop("NCCL_TOPO_FILE")),
    ("TCP", lambda on: on.variables.update(NCCL_IB_DISABLE="1")),
]


@pytest.mark.parametrize("damage", [case[1] for case in SLOWER], ids=[case[0] for case in SLOWER])
def test_what_slows_a_training(run: Runner, damage: Callable[[Launch], object]) -> None:
    healthy, slow = Launch("30b"), Launch("30b")
    damage(slow)
    assert speed(run(slow)[2]) < 0.95 * speed(run(healthy)[2])


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (new_fault("hca", node_name(1), "mlx5_3"), "remote process exited or there was a network error"),
        (new_fault("gpu", node_name(1), "3"), "unspecified launch failure"),
        (new_fault("node", node_name(1)), "remote process exited or there was a network error"),
    ],
    ids=lambda value: value.kind.value if isinstance(value, Fault) else "",
)
def test_what_breaks_later_ends_a_training(run: Runner, fault: Fault, expected: str) -> None:
    launch = Launch(updates=5)
    looks = iter(range(100))
    healthy = launch.world

    def world_by_now() -> view.View:
        if next(looks) == 4:
            launch.faults.append(fault)
        return healthy()

    launch.world = world_by_now  # type: ignore[method-assign]
    _, code, log = run(launch)
    assert code == 1
    assert expected in log
    assert 0 < len(statistics(log)) < 5


def test_groups_that_span_nodes_are_slower(run: Runner) -> None:
    assert speed(run(Launch(in_turn=True))[2]) < 0.9 * speed(run(Launch())[2])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--learning-rate 1", "unrecognized arguments: --learning-rate"),
        ("--lr", "argument --lr: expected one argument"),
        ("--batch-size eight", "argument --batch-size: invalid int value: 'eight'"),
        ("--arch opt", "argument --arch: invalid choice: 'opt'"),
        ("--max-upd 3", "unrecognized arguments: --max-upd"),
    ],
)
def test_a_command_line_that_metaseq_would_refuse(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        metaseq_options.parse(words.split())
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_a_rank_leaves_its_call_for_mpirun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ranks.CALL, str(tmp_path / "call.json"))
    assert metaseq.main(["--task", "dummy_lm", "--device-id", "3"]) == 0
    call = json.loads((tmp_path / "call.json").read_text())
    assert (call["module"], call["options"]["device_id"]) == ("metaseq", 3)


@pytest.mark.parametrize("words", [["--task", "dummy_lm"], ["--task", "language_modeling"]])
def test_what_is_not_simulated_is_said(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert metaseq.main(words) == 1
    assert capsys.readouterr().err.startswith("simulator: ")


def test_the_learning_rate_rises_and_falls_to_its_end() -> None:
    words = "--lr 0.001 --end-learning-rate 0.0001 --warmup-updates 10 --total-num-update 110 --max-update 110"
    options = metaseq_options.parse(words.split())
    found = [metaseq_log.learning_rate(options, number) for number in (1, 10, 60, 110, 200)]
    assert found == pytest.approx([0.0001, 0.001, 0.00055, 0.0001, 0.0001])


def test_the_last_checkpoint_is_off_when_its_option_is_given() -> None:
    assert metaseq_options.parse([]).save_last_checkpoint is True
    assert metaseq_options.parse(["--save-last-checkpoint"]).save_last_checkpoint is False


def test_checkpointing_and_a_float32_copy_change_what_is_needed() -> None:
    found = plan(models().sizes["13b"], H100, 1)
    options = metaseq_options.parse(training_arguments(found, MetaseqOptions(model_size="13b")))
    model: Model = metaseq._model(options, 8)
    options.sequence_parallel, options.checkpoint_activations = False, True
    assert metaseq._model(options, 8).memory() < model.memory()
    options.memory_efficient_fp16 = False
    assert metaseq._model(options, 8).memory() > metaseq._model(options, 8).parameters * 16 / 8
