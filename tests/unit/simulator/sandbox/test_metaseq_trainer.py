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
from workloads.metaseq.plan import Plan
from workloads.metaseq.sizes import models

HEAD = "barrierlesstcpr://metaseq-mpiworker-0.metaseq:29400"
SIZES = models().sizes
Runner = Callable[["Launch"], tuple[int, int, str]]


def parsed(words: Sequence[str]) -> Namespace:
    return recipe.parser(programs()["metaseq"]["options"]).parse_args(list(words))


def updates(log: str) -> list[dict[str, Any]]:
    return [json.loads(found) for found in re.findall(r"\| train_inner \| (\{.*\})", log)]


@dataclass
class Launch(MetaseqJob):
    """The ranks of some nodes, with options as from mpirun. Change it, then `run`."""

    folder: Path = Path("/nowhere")
    size: str = "66b"
    updates: int = 2
    variables: dict[str, str] = field(default_factory=lambda: {"NCCL_TOPO_FILE": "/topology.xml"})
    extra: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.options = {"modelSize": self.size}
        super().__post_init__()
        self.pods = {each.name: each for each in self.make_pods()[:-1]}
        options = MetaseqOptions(model_size=self.size, num_updates=self.updates)
        self.plan: Plan = Run(options=options, pool=pool(), nodes=self.nodes, image="metaseq:1", **PLATFORM).plan
        self.words = training_arguments(self.plan, options)
        self.places = [(node, local) for node in range(self.nodes) for local in range(8)]
        self.own: list[dict[str, Any]] = [{"rank": rank, "local": local} for rank, (_, local) in enumerate(self.places)]

    def phase(self, name: str) -> str:
        return "Running"

    def state(self, pod: SandboxPod) -> Object:
        hardware = self.hardware(pod.node)
        hcas = [hca.pci for hca in hardware.hcas if hca.link_layer == "InfiniBand"]
        topology = {"groups": [[gpu.pci, hca] for gpu, hca in zip(hardware.gpus, hcas, strict=True)]}
        return {"sshd": {"topologies": {"/topology.xml": topology}, "nccl_conf": {"NCCL_IB_HCA": "^mlx5_8"}}}

    def world(self) -> view.View:
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
def test_every_size_trains_as_planned_at_the_stated_utilization(run: Runner, size: str) -> None:
    nodes = 8 if size == "175b" else 2
    launch = Launch(size=size, nodes=nodes)
    _, code, log = run(launch)
    assert code == 0, log
    assert len(updates(log)) == 2
    assert f"max_update: {launch.updates}" in log
    assert float(updates(log)[-1]["bsz"]) == models().sequences(SIZES[size])
    reached = speed(log) * launch.plan.flops_per_token / (8 * nodes * skus.sku(H100).gpu_bf16_tflops * 1e12)
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
    ("parallel of three", _with("--model-parallel-size", "3"), "16 is not divisible by 3", 0),
    ("larger world", _all(size=32), "16/32 clients joined", 0),
    ("same rank", _rank_9(rank=1), "16/16 clients joined", 0),
    ("no such GPU", _rank_9(local=9), "CUDA error: invalid device ordinal", 9),
    ("unknown head", _all(head="tcp://w-7.w:29400"), "trying to connect to (w-7.w, 29400)", 0),
    ("another head", _all(head="tcp://metaseq-mpiworker-1.metaseq:29400"), "socket has timed out after 1800s", 0),
    ("lost GPU", _fault("gpu", node_name(1), "6"), "unspecified launch failure", 14),
    ("partitions", _fault("partition", node_name(1)), "NCCL error in", 0),
]


@pytest.mark.parametrize(
    ("damage", "expected", "rank"), [case[1:] for case in FAILURES], ids=[case[0] for case in FAILURES]
)
def test_an_error_ends_the_training(run: Runner, damage: Callable[[Launch], object], expected: str, rank: int) -> None:
    launch = Launch()
    damage(launch)
    first, code, log = run(launch)
    assert (first, code) == (rank, 1), log
    assert expected in log
    assert not updates(log)


SLOWER: dict[str, Callable[[Launch], object]] = {
    "a slow link": _fault("link", node_name(1), "mlx5_3", 100),
    "no topology file": lambda on: on.variables.pop("NCCL_TOPO_FILE"),
    "TCP": lambda on: on.variables.update(NCCL_IB_DISABLE="1"),
}


@pytest.mark.parametrize("damage", SLOWER)
def test_a_slower_network_slows_the_training(run: Runner, damage: str) -> None:
    healthy, slow = Launch(size="30b"), Launch(size="30b")
    SLOWER[damage](slow)
    assert speed(run(slow)[2]) < 0.95 * speed(run(healthy)[2])


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (new_fault("hca", node_name(1), "mlx5_3"), "remote process exited or there was a network error"),
        (new_fault("gpu", node_name(1), "3"), "unspecified launch failure"),
    ],
    ids=lambda value: value.kind.value if isinstance(value, Fault) else "",
)
def test_a_later_fault_ends_the_training(
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
        ("--batch-size eight", "argument --batch-size: invalid int value: 'eight'"),
        ("--arch opt", "argument --arch: invalid choice: 'opt'"),
        ("--max-upd 3", "unrecognized arguments: --max-upd"),
    ],
)
def test_rejects_a_wrong_command_line(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parsed(words.split())
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_a_rank_leaves_its_call_for_mpirun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ranks.CALL, str(tmp_path / "call.json"))
    assert metaseq.main(["--task", "dummy_lm", "--device-id", "3"]) == 0
    call = json.loads((tmp_path / "call.json").read_text())
    assert (call["module"], call["options"]["device_id"]) == ("metaseq", 3)
    monkeypatch.delenv(ranks.CALL)
    assert metaseq.main(["--task", "dummy_lm"]) == 1
