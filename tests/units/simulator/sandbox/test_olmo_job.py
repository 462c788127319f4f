"""OLMo's real scripts in real sandboxes: data copied, interrupted and damaged; trainings that meet or do not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.sandbox import sandbox
from simulator.sandbox.library import olmo_data
from simulator.world.faults import new_fault
from tests.support.waiting import eventually
from tests.units.simulator.sandbox.blob_server import Blobs, blob_server
from tests.units.simulator.sandbox.job import node_name
from tests.units.simulator.sandbox.olmo import Training, prepare

FOLDER = "preprocessed/olmo-mix/v1_5/gpt-neox-20b-pii-special"
FILES = (f"{FOLDER}/part-000-00000.npy", f"{FOLDER}/part-000-00001.npy")
MANIFEST = "prepared/OLMo-1B-2840226687.tsv"
ALIVE = "prepared/OLMo-1B-2840226687.alive"
BLOCKS = {"BLOCK_BYTES": "65536", "PARALLEL": "1"}  # four blocks a file
RUN = "ai/OLMo-1B"


@pytest.fixture(scope="module", autouse=True)
def _needs_sandbox() -> None:
    assert sandbox.available() is None


@pytest.fixture
def blobs(tmp_path: Path) -> Iterator[Blobs]:
    with blob_server(tmp_path / "pki") as served:
        yield served


def whole(path: str) -> bytes:
    return olmo_data.content(f"/{path}")


# --- the preparation ---


@pytest.mark.parametrize("fetches", [True, False], ids=["by the service", "through the pod"])
def test_the_files_that_the_config_names_are_copied(tmp_path: Path, blobs: Blobs, fetches: bool) -> None:
    blobs.fetches = fetches
    code, log = prepare(tmp_path, blobs)
    assert code == 0, log
    assert {path: blobs.stored[path] for path in FILES} == {path: whole(path) for path in FILES}
    lines = blobs.stored[MANIFEST].decode().splitlines()
    assert lines == [f"{olmo_data.FILE_BYTES}\t{path}" for path in FILES]
    assert f"Prepared: 2 files, {2 * olmo_data.FILE_BYTES} bytes." in log
    assert ("goes through this pod" in log) != fetches


def test_nothing_is_copied_twice(tmp_path: Path, blobs: Blobs) -> None:
    prepare(tmp_path, blobs)
    before = len(blobs.written_blocks)
    code, log = prepare(tmp_path, blobs)
    assert code == 0, log
    assert len(blobs.written_blocks) == before
    assert log.count("there already") == 2


def test_the_preparation_says_again_and_again_that_it_is_at_work(tmp_path: Path, blobs: Blobs) -> None:
    code, log = prepare(tmp_path, blobs, HEARTBEAT_S="0.2")
    assert code == 0, log
    assert blobs.puts.count(ALIVE) > 1


def test_an_interrupted_copy_goes_on_where_it_ended(tmp_path: Path, blobs: Blobs) -> None:
    blobs.blocks_before_outage = 6
    code, log = prepare(tmp_path, blobs, **BLOCKS)
    assert code == 1, log
    assert "another try goes on from here" in log
    assert MANIFEST not in blobs.stored, "the training must not start"
    blobs.blocks_before_outage = None
    code, log = prepare(tmp_path, blobs, **BLOCKS)
    assert code == 0, log
    assert len(blobs.written_blocks) == 8, "each block once"
    assert all(blobs.stored[path] == whole(path) for path in FILES)


def test_a_blob_of_the_wrong_size_is_copied_again(tmp_path: Path, blobs: Blobs) -> None:
    blobs.stored[FILES[0]] = b"half of it"
    code, log = prepare(tmp_path, blobs)
    assert code == 0, log
    assert f"wrong size: {FILES[0]} has 10 bytes instead of {olmo_data.FILE_BYTES}" in log
    assert blobs.stored[FILES[0]] == whole(FILES[0])


def test_a_copy_that_comes_out_short_is_not_called_complete(tmp_path: Path, blobs: Blobs) -> None:
    blobs.cut_bytes = 1
    code, log = prepare(tmp_path, blobs)
    assert code == 1, log
    assert f"has {olmo_data.FILE_BYTES - 1} bytes after copying instead of {olmo_data.FILE_BYTES}" in log
    assert MANIFEST not in blobs.stored


def test_a_refused_sas_ends_the_job_and_stays_secret(tmp_path: Path, blobs: Blobs) -> None:
    code, log = prepare(tmp_path, blobs, sas="sp=rcwl&sig=expired")
    assert code == 64, log
    assert "may not read blobs (HTTP 403): it has expired or lacks a permission" in log
    assert "sig=" not in log


def test_a_file_that_the_source_does_not_have(tmp_path: Path, blobs: Blobs) -> None:
    code, log = prepare(tmp_path, blobs, CONFIG="/opt/OLMo/configs/none.yaml")
    assert code == 64
    assert "the image has no training config /opt/OLMo/configs/none.yaml" in log


# --- the training ---


@pytest.fixture
def training(tmp_path: Path) -> Training:
    made = Training(tmp_path)
    made.put_data(*FILES, manifest=MANIFEST)
    return made


def two_nodes(folder: Path, **fields: object) -> Training:
    made = Training(folder, nodes=2, **fields)  # type: ignore[arg-type]
    made.put_data(*FILES, manifest=MANIFEST)
    return made


def test_trains_to_the_last_step_and_leaves_a_checkpoint(training: Training) -> None:
    ((code, log),) = training.run()
    assert code == 0, log
    assert "Total number of parameters: 1,176,764,416" in log
    assert "[step=5/739328,epoch=0]" in log
    assert "[step=6/" not in log
    assert (training.folder / "checkpoints" / RUN / "step5-unsharded" / "model.pt").is_file()
    assert not [path for path in (training.folder / "scratch-0").rglob("*") if "step" in path.name]


def test_each_step_tells_tokens_per_second_and_mfu(training: Training) -> None:
    ((_, log),) = training.run()
    shown = [line for line in log.splitlines() if line.startswith("throughput: ")]
    assert len(shown) == 4, "OLMo leaves the first step out"
    assert shown[0].endswith("MFU 47.0 %"), "the simulator's training_mfu, by the program's own count"


def test_a_restart_goes_on_from_the_last_checkpoint(training: Training) -> None:
    training.run()
    again = Training(training.folder, options={"stopAt": 7})
    ((code, log),) = again.run()
    assert code == 0, log
    assert "Loading checkpoint from /checkpoints/ai/OLMo-1B/step5-unsharded" in log
    assert "[step=5/" not in log
    assert "[step=7/" in log


def test_two_nodes_train_over_infiniband(tmp_path: Path) -> None:
    (code, log), (other_code, other_log) = two_nodes(tmp_path).run()
    assert (code, other_code) == (0, 0), log + other_log
    assert "rank 15 nranks 16" in log
    assert "Using network IB" in log
    assert "mlx5_8" not in log, "the Ethernet function is not for NCCL"


def test_two_nodes_see_each_others_checkpoints_at_once(tmp_path: Path) -> None:
    (code, log), (other_code, other_log) = two_nodes(tmp_path, profile="checkpoints").run()
    assert (code, other_code) == (0, 0), log + other_log
    for rank in range(2):
        saved = tmp_path / f"checkpoints-{rank}" / RUN
        assert {path.name for path in saved.glob("step*")} == {"step0", "step5-unsharded"}, "what one saved, both have"


@pytest.mark.long
def test_two_nodes_that_remember_what_was_not_there_end_at_the_first_checkpoint(tmp_path: Path) -> None:
    (code, log), (other_code, other_log) = two_nodes(tmp_path, profile="sequential").run()
    assert (code, other_code) == (1, 1), log + other_log
    assert "Uncaught TimeoutError: Waiting for checkpoint directory timed out" in other_log
    assert "Saving pre-train checkpoint" in log
    assert "Starting training" not in log


def test_training_waits_for_its_data_and_says_so(tmp_path: Path) -> None:
    ((code, log),) = Training(tmp_path, env={"DATA_TIMEOUT_S": "1"}).run()
    assert code == 64
    assert "Waiting for the data: kubectl logs -n ai job/olmo-data" in log
    assert "its data was not complete within 1 s" in log


def test_training_does_not_hold_its_nodes_for_a_preparation_that_has_ended(tmp_path: Path) -> None:
    job = Training(tmp_path, env={"DATA_SILENCE_S": "1"})
    job.put_alive(ALIVE)
    ((code, log),) = job.run()
    assert code == 64
    assert "its data is not complete, and nothing has been at work on it for 1 s" in log
    assert "kubectl logs -n ai job/olmo-data" in log


@pytest.mark.long
def test_training_waits_for_as_long_as_the_preparation_is_at_work(tmp_path: Path) -> None:
    job = Training(tmp_path, env={"DATA_SILENCE_S": "4"})  # it looks every 5 s
    stop = threading.Event()

    def prepare_slowly() -> None:
        log = job.folder / "rank-0.log"
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


def test_data_that_is_cut_short_is_named(training: Training) -> None:
    (training.folder / "data" / FILES[1]).write_bytes(b"half")
    ((code, log),) = training.run()
    assert code == 64
    assert f"1 of 2 data files are missing or cut short in /data, the first: {FILES[1]} (4, expected" in log


def test_missing_data_without_preparation(tmp_path: Path) -> None:
    job = Training(tmp_path, options={"prepare": False})
    job.put_data(FILES[0])
    ((code, log),) = job.run()
    assert code == 64
    assert f"the first: {FILES[1]} (absent, expected any bytes)" in log


def test_data_that_vanishes_is_olmos_own_error(training: Training) -> None:
    config = training.folder / "scratch-0" / "own.yaml"
    config.write_text("run_name: x\ndata:\n  paths:\n    - /data/none.npy\n")
    training.template["spec"]["containers"][0]["command"] = ["torchrun", "scripts/train.py", "/scratch/own.yaml"]
    ((code, log),) = training.run()
    assert code == 1
    assert "Uncaught FileNotFoundError: [Errno 2] No such file or directory: '/data/none.npy'" in log
    assert "ChildFailedError" in log


def test_checkpoints_that_cannot_be_written(tmp_path: Path) -> None:
    job = Training(tmp_path, read_only_checkpoints=True)
    job.put_data(*FILES, manifest=MANIFEST)
    ((code, log),) = job.run()
    assert code == 1
    assert "Read-only file system" in log


def test_a_node_that_does_not_come(tmp_path: Path) -> None:
    ((code, log),) = two_nodes(tmp_path, absent={1}, env={"MEETING_TIMEOUT_S": "2"}).run()
    assert code == 1
    assert "1/2 clients joined" in log


def test_a_first_node_that_does_not_come(tmp_path: Path) -> None:
    ((code, log),) = two_nodes(tmp_path, absent={0}, env={"MEETING_TIMEOUT_S": "2"}).run()
    assert code == 1
    assert "timed out after 2000ms while trying to connect to (olmo-0.olmo, 29400)" in log


def test_a_node_that_goes_away_ends_all(tmp_path: Path) -> None:
    job = two_nodes(tmp_path, leaves=1, options={"stopAt": 2000})
    (code, log), _ = job.run()
    assert code == 1
    assert "Watchdog caught collective operation timeout" in log


def test_a_gpu_without_the_memory(tmp_path: Path) -> None:
    job = Training(tmp_path, sku="Standard_NC4as_T4_v3")
    job.put_data(*FILES, manifest=MANIFEST)
    ((code, log),) = job.run()
    assert code == 1
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.12 GiB" in log
    assert "it needs 19 GB" in log
    assert "[step=1/" not in log


def test_two_partitions_cannot_train_together(tmp_path: Path) -> None:
    job = two_nodes(tmp_path, faults=[new_fault("partition", node_name(1))])
    (code, log), (other_code, _) = job.run()
    assert (code, other_code) == (1, 1)
    assert "with status=12" in log
    assert "DistBackendError" in log


def test_without_rdma_the_training_is_slow(tmp_path: Path) -> None:
    (code, log), _ = two_nodes(tmp_path, rdma=False, options={"stopAt": 2}).run()
    assert code == 0, log
    assert "Using network Socket" in log
    (shown,) = [line for line in log.splitlines() if line.startswith("throughput: ")]
    assert float(shown.split("MFU ")[1].split()[0]) < 40


def test_a_broken_gpu(training: Training) -> None:
    training.faults.append(new_fault("gpu", node_name(0), "6"))
    ((code, log),) = training.run()
    assert code == 1
    assert "CUDA error: unspecified launch failure" in log
