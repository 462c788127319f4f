from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.sandbox import sandbox
from simulator.sandbox.images import programs
from simulator.sandbox.library import olmo_config
from simulator.sandbox.library.recipe import Values
from simulator.world.faults import new_fault
from tests.support.waiting import eventually
from tests.unit.simulator.sandbox.sandboxes import node_name
from tests.unit.simulator.sandbox.test_olmo_preparation import ALIVE, FILES, MANIFEST
from tests.unit.simulator.sandbox.training_pods import Training
from workloads.olmo.configs import training_configs
from workloads.olmo.memory import state_bytes_per_gpu

RUN = "ai/OLMo-1B"


def olmo(folder: Path, *, data: bool = True, **fields: Any) -> Training:
    made = Training(folder, **fields)
    if data:
        made.put_data(*FILES, manifest=MANIFEST)
    return made


@pytest.mark.parametrize("name", training_configs())
def test_the_short_configs_of_the_image_agree_with_the_facts(name: str) -> None:
    facts = training_configs()[name]
    path = Path(sandbox.__file__).parent / "files" / "olmo" / facts.path
    config = olmo_config.load(path, [], [])
    values = Values(programs()["olmo_train"], {**config.settings, "gpus": 1})
    embedding = config.settings["model_embedding_size"] * facts.width
    assert (values["parameters"], values["without"]) == (facts.parameters, facts.parameters - embedding)
    assert values["tokens"] == facts.batch * facts.sequence_length
    assert config.settings["device_train_microbatch_size"] == facts.micro_batch
    assert yaml.safe_load(path.read_text())["data"]["paths"] == config.data
    assert config.max_steps(values["tokens"]) > 0
    assert values["memory"] == state_bytes_per_gpu(facts, gpus=1)


def test_trains_to_the_last_step_and_continues_from_its_checkpoint(tmp_path: Path) -> None:
    ((code, log),) = olmo(tmp_path).run()
    assert code == 0, log
    assert "Total number of parameters: 1,176,764,416" in log
    assert "[step=5/739328,epoch=0]" in log
    assert "[step=6/" not in log
    shown = [line for line in log.splitlines() if line.startswith("throughput: ")]
    assert len(shown) == 4, "OLMo logs no speed for the first step"
    assert shown[0].endswith("MFU 47.0 %")
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
    assert "mlx5_8" not in log
    for rank in range(2):
        saved = tmp_path / f"checkpoints-{rank}" / RUN
        assert {path.name for path in saved.glob("step*")} == {"step0", "step5-unsharded"}


@pytest.mark.long
def test_two_nodes_whose_mounts_cache_missing_names_fail_at_the_first_checkpoint(tmp_path: Path) -> None:
    (code, log), (other_code, other_log) = olmo(tmp_path, nodes=2, profile="sequential").run()
    assert (code, other_code) == (1, 1), log + other_log
    assert "Uncaught TimeoutError: Waiting for checkpoint directory timed out" in other_log
    assert "Saving pre-train checkpoint" in log
    assert "Starting training" not in log


def test_training_without_rdma_is_slow(tmp_path: Path) -> None:
    (code, log), _ = olmo(tmp_path, nodes=2, rdma=False, options={"stopAt": 2}).run()
    assert code == 0, log
    assert "Using network Socket" in log
    (shown,) = [line for line in log.splitlines() if line.startswith("throughput: ")]
    assert float(shown.split("MFU ")[1].split()[0]) < 40


def _half_a_file(job: Training) -> None:
    (job.folder / "data" / FILES[1]).write_bytes(b"half")


def _ended_preparation(job: Training) -> None:
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


def _unchanged(_: Training) -> None:
    """Changes nothing: only the fields of the case differ."""


BROKEN: list[tuple[str, Callable[[Training], None], dict[str, Any], int, list[str]]] = [
    ("slow preparation", _no_preparation, {"env": {"DATA_TIMEOUT_S": "1"}}, 64,
     ["kubectl logs -n ai job/olmo-data", "its data was not complete within 1 s"]),
    ("ended preparation", _ended_preparation, {"env": {"DATA_SILENCE_S": "1"}}, 64,
     ["its data is not complete, and its copying made no progress for 1 s", "kubectl logs -n ai job/olmo-data"]),
    ("half a file", _half_a_file, {}, 64,
     [f"1 of 2 data files in /data are missing or incomplete, the first: {FILES[1]} (4, expected"]),
    ("no preparation", _one_file_without_preparation, {"options": {"prepare": False}}, 64,
     [f"the first: {FILES[1]} (absent, expected any bytes)"]),
    ("vanished data", _vanished_data, {}, 1,
     ["Uncaught FileNotFoundError: [Errno 2] No such file or directory: '/data/none.npy'", "ChildFailedError"]),
    ("read-only checkpoints", _unchanged, {"read_only_checkpoints": True}, 1, ["Read-only file system"]),
    ("no second node", _unchanged, {"nodes": 2, "absent": {1}, "env": {"MEETING_TIMEOUT_S": "2"}}, 1,
     ["1/2 clients joined"]),
    ("no first node", _unchanged, {"nodes": 2, "absent": {0}, "env": {"MEETING_TIMEOUT_S": "2"}}, 1,
     ["timed out after 2000ms while trying to connect to (olmo-0.olmo, 29400)"]),
    ("a node leaves", _unchanged, {"nodes": 2, "leaves": 1, "options": {"stopAt": 2000}}, 1,
     ["Watchdog caught collective operation timeout"]),
    ("small GPU", _unchanged, {"sku": "Standard_NC4as_T4_v3"}, 1,
     ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.12 GiB", "it needs 19 GB"]),
    ("two partitions", _two_partitions, {"nodes": 2}, 1, ["with status=12", "DistBackendError"]),
    ("broken GPU", _broken_gpu, {}, 1, ["CUDA error: unspecified launch failure"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "fields", "code", "texts"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN]
)
def test_an_error_ends_the_training(
    tmp_path: Path, damage: Callable[[Training], None], fields: dict[str, Any], code: int, texts: list[str]
) -> None:
    job = olmo(tmp_path, **fields)
    damage(job)
    (found, log), *_ = job.run()
    assert found == code, log
    assert [text for text in texts if text not in log] == [], log


@pytest.mark.long
def test_training_waits_while_the_preparation_is_active(tmp_path: Path) -> None:
    job = olmo(tmp_path, data=False, env={"DATA_SILENCE_S": "4"})  # launch.sh looks every 5 s
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
