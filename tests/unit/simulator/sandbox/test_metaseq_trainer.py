"""The simulated metaseq-train: what it makes of the options that ranks are given, without a sandbox."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from config.data import skus
from k8s.objects import Object
from simulator.sandbox.commands import metaseq
from simulator.sandbox.images import programs
from simulator.sandbox.library import nccl, nccl_log, ranks, recipe, training, view
from simulator.sandbox.library.programs import Call
from simulator.sandbox.library.ranks import Rank
from simulator.world import performance
from simulator.world.faults import Fault, new_fault
from tests.support.pools import pool
from tests.support.sizes import H100
from tests.unit.simulator.sandbox.mpi_pods import MetaseqJob
from tests.unit.simulator.sandbox.sandboxes import PLATFORM, SandboxPod, node_name
from workloads.metaseq.manifests import Run, training_arguments
from workloads.metaseq.options import MetaseqOptions
from workloads.metaseq.plan import Plan, bytes_per_gpu
from workloads.metaseq.sizes import models

HEAD = "barrierlesstcpr://metaseq-mpiworker-0.metaseq:29400"
SIZES = models().sizes
Runner = Callable[["Launch"], tuple[int, int, str]]


def parsed(words: Sequence[str]) -> Namespace:
    """The options of metaseq-train."""
    return recipe.parser(programs()["metaseq"]["options"]).parse_args(list(words))


def updates(log: str) -> list[dict[str, Any]]:
    """The statistics that metaseq logs of each update."""
    return [json.loads(found) for found in re.findall(r"\| train_inner \| (\{.*\})", log)]


@dataclass
class Launch(MetaseqJob):
    """What mpirun hands over: the ranks of some nodes, each with its process's options. Change it, then `run`."""

    folder: Path = Path("/nowhere")
    size: str = "66b"
    updates: int = 2
    variables: dict[str, str] = field(default_factory=lambda: {"NCCL_TOPO_FILE": "/topology.xml"})
    in_turn: bool = False
    """Ranks of a node are not consecutive."""
    extra: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.options = {"modelSize": self.size}
        super().__post_init__()
        self.pods = {each.name: each for each in self.make_pods()[:-1]}
        options = MetaseqOptions(model_size=self.size, num_updates=self.updates)
        self.plan: Plan = Run(options=options, pool=pool(), nodes=self.nodes, image="metaseq:1", **PLATFORM).plan
        self.words = training_arguments(self.plan, options)
        places = [(node, local) for node in range(self.nodes) for local in range(8)]
        self.places = sorted(places, key=lambda place: place[1]) if self.in_turn else places
        self.own: list[dict[str, Any]] = [{"rank": rank, "local": local} for rank, (_, local) in enumerate(self.places)]

    def phase(self, name: str) -> str:
        return "Running"

    def state(self, pod: SandboxPod) -> Object:
        hardware = self.hardware(pod.node)
        hcas = [hca.pci for hca in hardware.hcas if hca.link_layer == "InfiniBand"]
        topology = {"groups": [[gpu.pci, hca] for gpu, hca in zip(hardware.gpus, hcas, strict=True)]}
        return {"sshd": {"topologies": {"/topology.xml": topology}, "nccl_conf": {"NCCL_IB_HCA": "^mlx5_8"}}}

    def world(self) -> view.View:
        """As the simulator would show it."""
        shown = self.snapshot()
        found = {key: view.Pod(key, facts) for key, facts in shown["pods"].items()}
        return view.View(shown["nodes"], found, next(iter(found.values())))

    def calls(self) -> list[Call]:
        pods, size = list(self.world().pods.values()), len(self.places)
        found: list[Call] = []
        for (node, local), own in zip(self.places, self.own, strict=True):
            words = ["--distributed-rank", str(own["rank"]), "--device-id", str(own["local"])]
            words += ["--distributed-world-size", str(own.get("size", size))]
            options = parsed([*self.words, *self.extra, *words, "--distributed-init-method", own.get("head", HEAD)])
            found.append(Call(Rank(pods[node], local, 8, len(found)), vars(options)))
        return found


@pytest.fixture(autouse=True)
def _recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "program", programs().__getitem__)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    """First failed rank, exit code and log of a launch, without its pauses."""

    def simulate(launch: Launch) -> tuple[int, int, str]:
        monkeypatch.setattr(view, "load", launch.world)
        monkeypatch.setattr(view, "numbers", performance.numbers)
        for module in (training, nccl_log, nccl):
            monkeypatch.setattr(module, "pause", lambda seconds: None)
        variables = {"NCCL_DEBUG": "WARN", **launch.variables}
        rank, code = metaseq.simulate(launch.calls(), variables, nccl_log.Log(variables))
        return rank, code, capsys.readouterr().out

    return simulate


def speed(log: str) -> float:
    return float(updates(log)[-1]["wps"])


@pytest.mark.parametrize("size", SIZES)
def test_every_size_trains_with_the_options_and_the_memory_that_were_planned(run: Runner, size: str) -> None:
    nodes = 8 if size == "175b" else 2
    launch = Launch(size=size, nodes=nodes)
    _, code, log = run(launch)
    assert code == 0, log
    assert len(updates(log)) == 2
    assert f"max_update: {launch.updates}" in log
    assert float(updates(log)[-1]["bsz"]) == models().sequences(SIZES[size])
    planned = bytes_per_gpu(SIZES[size], gpus=8 * nodes, micro_batch=launch.plan.micro_batch)
    assert metaseq.Model(parsed(launch.words), 8 * nodes).memory() == pytest.approx(planned)


def test_a_healthy_training_reaches_the_stated_utilisation(run: Runner) -> None:
    launch = Launch(size="13b")
    reached = speed(run(launch)[2]) * launch.plan.flops_per_token / (16 * skus.sku(H100).gpu_bf16_tflops * 1e12)
    assert reached == pytest.approx(performance.numbers()["training_mfu"], rel=1e-4)


def _with(*words: str) -> Callable[[Launch], object]:
    return lambda on: on.extra.extend(words)


def _rank_9(**own: Any) -> Callable[[Launch], object]:
    return lambda on: on.own[9].update(own)


def _all(**own: Any) -> Callable[[Launch], object]:
    return lambda on: [each.update(own) for each in on.own]


def _fault(*fault: Any) -> Callable[[Launch], object]:
    return lambda on: on.faults.append(new_fault(*fault))


FAILURES: list[tuple[str, Callable[[Launch], object], str, int]] = [
    ("micro-batch", _with("--batch-size", "16"), "OutOfMemoryError: CUDA out of memory", 0),
    ("checkpointing", _with("--checkpoint-activations"), "Cannot set --checkpoint-activations", 0),
    ("dropout", _with("--dropout", "0.1"), "dropout with seq_parallel", 0),
    ("parallel of one", _with("--model-parallel-size", "1"), "greater than 1", 0),
    ("parallel of three", _with("--model-parallel-size", "3"), "16 is not divisible by 3", 0),
    ("heads", _with("--decoder-attention-heads", "12"), "12 is not divisible by 8", 0),
    ("larger world", _all(size=32), "16/32 clients joined", 0),
    ("smaller world", _all(size=8), "rank 8 is not below the world size 8", 8),
    ("same rank", _rank_9(rank=1), "rank 1 is taken already", 1),
    ("same GPU", _rank_9(local=0), "Duplicate GPU detected : rank 9 and rank 8", 9),
    ("no such GPU", _rank_9(local=9), "CUDA error: invalid device ordinal", 9),
    ("other options", _rank_9(head="tcp://w-0.w:1"), "other options than rank 0: distributed_init", 9),
    ("no method", _all(head="env://"), "'env://' is not simulated", 0),
    ("lost GPU", _fault("gpu", node_name(1), "6"), "unspecified launch failure", 14),
    ("partitions", _fault("partition", node_name(1)), "NCCL error in", 0),
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
    assert not updates(log)


@pytest.mark.parametrize(
    ("host", "known"), [("w-7.w", False), ("metaseq-mpiworker-1.metaseq", True), ("10.244.0.77", True)]
)
def test_an_address_that_does_not_lead_to_rank_0_is_tried_until_time_is_up(run: Runner, host: str, known: bool) -> None:
    """In the words of PyTorch 2.1: where nothing listens, c10d warns of nothing before."""
    launch = Launch()
    _all(head=f"tcp://{host}:29400")(launch)
    first, code, log = run(launch)
    gai = "gai error: -2 - Name or service not known"
    warned = f"[W socket.cpp] [c10d] The IPv6 network addresses of ({host}, 29400) cannot be retrieved ({gai})."
    assert (first, code) == (0, 1)
    assert log.splitlines() == [
        *([] if known else [warned]),
        "Traceback (most recent call last):",
        f"TimeoutError: The client socket has timed out after 1800s while trying to connect to ({host}, 29400).",
    ]


SLOWER: dict[str, Callable[[Launch], object]] = {
    "a slow link": _fault("link", node_name(1), "mlx5_3", 100),
    "no topology file": lambda on: on.variables.pop("NCCL_TOPO_FILE"),
    "TCP": lambda on: on.variables.update(NCCL_IB_DISABLE="1"),
}


@pytest.mark.parametrize("damage", SLOWER)
def test_what_slows_a_training(run: Runner, damage: str) -> None:
    healthy, slow = Launch(size="30b"), Launch(size="30b")
    SLOWER[damage](slow)
    assert speed(run(slow)[2]) < 0.95 * speed(run(healthy)[2])


def test_groups_that_span_nodes_are_slower(run: Runner) -> None:
    assert speed(run(Launch(in_turn=True))[2]) < 0.9 * speed(run(Launch())[2])


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (new_fault("hca", node_name(1), "mlx5_3"), "remote process exited or there was a network error"),
        (new_fault("gpu", node_name(1), "3"), "unspecified launch failure"),
    ],
    ids=lambda value: value.kind.value if isinstance(value, Fault) else "",
)
def test_what_breaks_later_ends_a_training(
    run: Runner, monkeypatch: pytest.MonkeyPatch, fault: Fault, expected: str
) -> None:
    launch = Launch(updates=5)
    looks, healthy = iter(range(100)), launch.world

    def world_by_now() -> view.View:
        if next(looks) == 6:
            launch.faults.append(fault)
        return healthy()

    monkeypatch.setattr(launch, "world", world_by_now)
    _, code, log = run(launch)
    assert code == 1
    assert expected in log
    assert 0 < len(updates(log)) < 5


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
        parsed(words.split())
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_a_rank_leaves_its_call_for_mpirun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ranks.CALL, str(tmp_path / "call.json"))
    assert metaseq.main(["--task", "dummy_lm", "--device-id", "3"]) == 0
    call = json.loads((tmp_path / "call.json").read_text())
    assert (call["module"], call["options"]["device_id"]) == ("metaseq", 3)
    assert call["options"]["save_last_checkpoint"], "on unless its option is given"


@pytest.mark.parametrize("task", ["dummy_lm", "language_modeling"])
def test_what_is_not_simulated_is_said(task: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert metaseq.main(["--task", task]) == 1
    assert capsys.readouterr().err.startswith("simulator: ")


def test_checkpointing_and_a_float32_copy_change_what_is_needed() -> None:
    options = parsed(Launch(size="13b", nodes=1).words)
    before = metaseq.Model(options, 8).memory()
    options.sequence_parallel, options.checkpoint_activations = False, True
    assert metaseq.Model(options, 8).memory() < before
    options.memory_efficient_fp16 = False
    assert metaseq.Model(options, 8).memory() > metaseq.Model(options, 8).parameters * 16 / 8
