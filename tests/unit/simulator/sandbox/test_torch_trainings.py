"""Trainings under torchrun, OLMo's and ours: real scripts in real sandboxes, and nodes that meet, stop, or go away."""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.sandbox import sandbox
from simulator.sandbox.commands import torchrun
from simulator.sandbox.images import programs
from simulator.sandbox.library import olmo_config, torch_team, view
from simulator.world.faults import new_fault
from tests.support.pools import A100
from tests.support.waiting import eventually
from tests.unit.simulator.sandbox.sandboxes import node_name
from tests.unit.simulator.sandbox.test_olmo_preparation import ALIVE, FILES, MANIFEST
from tests.unit.simulator.sandbox.training_pods import Pretraining, Training
from workloads.olmo.configs import training_configs
from workloads.olmo.memory import state_bytes_per_gpu

RUN = "ai/OLMo-1B"
LINE = re.compile(
    r"step (\d+): loss (\d+\.\d{4}), gradient \d+\.\d\d, ([\d,]+) tokens/s, MFU (\d\.\d{3})$", re.MULTILINE
)


def olmo(folder: Path, *, data: bool = True, **fields: Any) -> Training:
    made = Training(folder, **fields)
    if data:
        made.put_data(*FILES, manifest=MANIFEST)
    return made


# --- OLMo ---


@pytest.mark.parametrize("name", training_configs())
def test_configs_in_short_agree_with_the_facts(name: str) -> None:
    """Those of the simulated image stand for the repository's."""
    facts = training_configs()[name]
    path = Path(sandbox.__file__).parent / "files" / "olmo" / facts.path
    config = olmo_config.load(path, [], [])
    embedding = config.number("model.embedding_size") * facts.width
    assert config.parameters == (facts.parameters, facts.parameters - embedding)
    assert config.tokens_per_step == facts.batch * facts.sequence_length
    assert config.number("device_train_microbatch_size") == facts.micro_batch
    assert yaml.safe_load(path.read_text())["data"]["paths"] == list(config.files[: config.data_files])
    assert config.max_steps > 0
    assert config.state_bytes == state_bytes_per_gpu(facts, gpus=1)


def test_olmo_trains_to_the_last_step_and_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    ((code, log),) = olmo(tmp_path).run()
    assert code == 0, log
    assert "Total number of parameters: 1,176,764,416" in log
    assert "[step=5/739328,epoch=0]" in log
    assert "[step=6/" not in log
    shown = [line for line in log.splitlines() if line.startswith("throughput: ")]
    assert len(shown) == 4, "OLMo leaves the first step out"
    assert shown[0].endswith("MFU 47.0 %"), "the simulator's training_mfu, by the program's own count"
    assert (tmp_path / "checkpoints-0" / RUN / "step5-unsharded" / "model.pt").is_file()
    assert not [path for path in (tmp_path / "scratch-0").rglob("*") if "step" in path.name]
    ((code, log),) = olmo(tmp_path, options={"stopAt": 7}).run()
    assert code == 0, log
    assert "Loading checkpoint from /checkpoints/ai/OLMo-1B/step5-unsharded" in log
    assert "[step=5/" not in log
    assert "[step=7/" in log


def test_two_nodes_train_over_infiniband_and_see_each_others_checkpoints(tmp_path: Path) -> None:
    (code, log), (other_code, other_log) = olmo(tmp_path, nodes=2, profile="checkpoints").run()
    assert (code, other_code) == (0, 0), log + other_log
    assert "rank 15 nranks 16" in log
    assert "Using network IB" in log
    assert "mlx5_8" not in log, "the Ethernet function is not for NCCL"
    for rank in range(2):
        saved = tmp_path / f"checkpoints-{rank}" / RUN
        assert {path.name for path in saved.glob("step*")} == {"step0", "step5-unsharded"}, "what one saved, both have"


@pytest.mark.long
def test_two_nodes_that_remember_what_was_not_there_end_at_the_first_checkpoint(tmp_path: Path) -> None:
    (code, log), (other_code, other_log) = olmo(tmp_path, nodes=2, profile="sequential").run()
    assert (code, other_code) == (1, 1), log + other_log
    assert "Uncaught TimeoutError: Waiting for checkpoint directory timed out" in other_log
    assert "Saving pre-train checkpoint" in log
    assert "Starting training" not in log


def test_without_rdma_the_training_is_slow(tmp_path: Path) -> None:
    (code, log), _ = olmo(tmp_path, nodes=2, rdma=False, options={"stopAt": 2}).run()
    assert code == 0, log
    assert "Using network Socket" in log
    (shown,) = [line for line in log.splitlines() if line.startswith("throughput: ")]
    assert float(shown.split("MFU ")[1].split()[0]) < 40


def _half_a_file(job: Training) -> None:
    (job.folder / "data" / FILES[1]).write_bytes(b"half")


def _nobody_at_work(job: Training) -> None:
    (job.folder / "data" / MANIFEST).unlink()
    job.put_alive(ALIVE)


def _one_file_without_preparation(job: Training) -> None:
    for path in (FILES[1], MANIFEST):
        (job.folder / "data" / path).unlink()


def _no_preparation(job: Training) -> None:
    (job.folder / "data" / MANIFEST).unlink()


def _vanished_data(job: Training) -> None:
    (job.folder / "scratch-0" / "own.yaml").write_text("run_name: x\ndata:\n  paths:\n    - /data/none.npy\n")
    job.template["spec"]["containers"][0]["command"] = ["torchrun", "scripts/train.py", "/scratch/own.yaml"]


def _broken_gpu(job: Training) -> None:
    job.faults.append(new_fault("gpu", node_name(0), "6"))


def _two_partitions(job: Training) -> None:
    job.faults.append(new_fault("partition", node_name(1)))


def _as_it_is(_: Training) -> None:
    """Only the fields of the case differ."""


BROKEN: list[tuple[str, Callable[[Training], None], dict[str, Any], int, list[str]]] = [
    ("slow preparation", _no_preparation, {"env": {"DATA_TIMEOUT_S": "1"}}, 64,
     ["Waiting for the data: kubectl logs -n ai job/olmo-data", "its data was not complete within 1 s"]),
    ("ended preparation", _nobody_at_work, {"env": {"DATA_SILENCE_S": "1"}}, 64,
     ["its data is not complete, and nothing has been at work on it for 1 s", "kubectl logs -n ai job/olmo-data"]),
    ("half a file", _half_a_file, {}, 64,
     [f"1 of 2 data files are missing or cut short in /data, the first: {FILES[1]} (4, expected"]),
    ("no preparation", _one_file_without_preparation, {"options": {"prepare": False}}, 64,
     [f"the first: {FILES[1]} (absent, expected any bytes)"]),
    ("vanished data", _vanished_data, {}, 1,
     ["Uncaught FileNotFoundError: [Errno 2] No such file or directory: '/data/none.npy'", "ChildFailedError"]),
    ("read-only checkpoints", _as_it_is, {"read_only_checkpoints": True}, 1, ["Read-only file system"]),
    ("no second node", _as_it_is, {"nodes": 2, "absent": {1}, "env": {"MEETING_TIMEOUT_S": "2"}}, 1,
     ["1/2 clients joined"]),
    ("no first node", _as_it_is, {"nodes": 2, "absent": {0}, "env": {"MEETING_TIMEOUT_S": "2"}}, 1,
     ["timed out after 2000ms while trying to connect to (olmo-0.olmo, 29400)"]),
    ("a node leaves", _as_it_is, {"nodes": 2, "leaves": 1, "options": {"stopAt": 2000}}, 1,
     ["Watchdog caught collective operation timeout"]),
    ("small GPU", _as_it_is, {"sku": "Standard_NC4as_T4_v3"}, 1,
     ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.12 GiB", "it needs 19 GB"]),
    ("two partitions", _two_partitions, {"nodes": 2}, 1, ["with status=12", "DistBackendError"]),
    ("broken GPU", _broken_gpu, {}, 1, ["CUDA error: unspecified launch failure"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "fields", "code", "told"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN]
)
def test_what_ends_olmos_training(
    tmp_path: Path, damage: Callable[[Training], None], fields: dict[str, Any], code: int, told: list[str]
) -> None:
    job = olmo(tmp_path, **fields)
    damage(job)
    (found, log), *_ = job.run()
    assert found == code, log
    assert [text for text in told if text not in log] == [], log


@pytest.mark.long
def test_training_waits_for_as_long_as_the_preparation_is_at_work(tmp_path: Path) -> None:
    job = olmo(tmp_path, data=False, env={"DATA_SILENCE_S": "4"})  # it looks every 5 s
    stop = threading.Event()

    def prepare_slowly() -> None:
        log = job.first_log()
        eventually(lambda: log.exists() and "Waiting for the data" in log.read_text(), "the training waits")
        for second in range(1000, 1012):
            job.put_alive(ALIVE, second)
            stop.wait(0.5)
        job.put_data(*FILES, manifest=MANIFEST)

    preparation = threading.Thread(target=prepare_slowly)
    preparation.start()
    ((code, log),) = job.run()
    stop.set()
    preparation.join()
    assert code == 0, log


# --- our pre-training ---


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
