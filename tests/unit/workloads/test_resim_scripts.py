from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import workloads
from simulator.host.paths import ROOT
from tests.support.waiting import eventually

RUNNER = Path(workloads.__file__).parent / "resim" / "scripts" / "run-scenario.sh"
LOAD = ROOT / "docker" / "test-io"
WRITE = 'echo working; echo 12345 >"$OUTPUT/track"; mkdir "$OUTPUT/lidar"; echo 1 >"$OUTPUT/lidar/a b"'

WRITTEN = ["log.txt", "output/lidar/a b", "output/track", "result.json"]


@dataclass
class Batch:
    folder: Path

    def start(self, index: int, pod: str, command: Sequence[str], **variables: str) -> subprocess.Popen[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "OUTPUTS": str(self.folder),
            "NAMESPACE": "ai",
            "BATCH": "night",
            "LIST": "",
            "JOB_COMPLETION_INDEX": str(index),
            "POD": pod,
            "NODE": "node-1",
            "INPUT": str(self.folder / "input"),
            **variables,
        }
        return subprocess.Popen(
            ["bash", str(RUNNER), *command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, index: int, script: str, pod: str = "pod-a", **variables: str) -> tuple[int, list[str]]:
        with self.start(index, pod, ["bash", "-c", script], **variables) as process:
            text, _ = process.communicate(timeout=60)
        return process.returncode, text.splitlines()

    @property
    def root(self) -> Path:
        return self.folder / "ai" / "night"

    def files(self, below: str) -> list[str]:
        folder = self.root / below
        return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())

    def result(self, scenario: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.root / "results" / scenario / "result.json").read_text())
        return found


def kill(process: subprocess.Popen[str]) -> None:
    """Kills all processes of the pod together, like a lost node."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)


@pytest.fixture
def batch(tmp_path: Path) -> Batch:
    return Batch(tmp_path)


# --- one scenario ---


def test_keeps_outputs_log_and_result_of_a_scenario_in_one_folder(batch: Batch) -> None:
    code, log = batch.run(7, f"{WRITE}; echo '\"inputBytes\": 99' >$STATS")
    assert code == 0
    assert log[-1].startswith("VERDICT: PASS scenario=scenario-000007 attempts=1 seconds=")
    assert batch.files("results/scenario-000007") == WRITTEN
    found = batch.result("scenario-000007")
    assert found["files"] == {"lidar/a b": 2, "track": 6}
    assert (found["outputBytes"], found["inputBytes"], found["node"], found["attempts"]) == (8, 99, "node-1", 1)
    assert found["started"] <= found["ended"]
    assert "working" in (batch.root / "results/scenario-000007/log.txt").read_text()
    assert batch.files("attempts") == []


def test_result_json_is_valid_for_any_output_of_the_command(batch: Batch) -> None:
    names = "cd $OUTPUT; printf four >$'a\\nb'; printf 3 >$'c\\td\\\\\"e'; printf 4 >$'\\xff'"
    bad = [r"\xef\xbb\xbf\"first\": 1", "rows=6", r"\"nan\": NaN", r"\"id\": 007"]
    good = [r"\"rows\": 5,\r", "", r"\"loss\": -1.5e-3, \"ok\": true"]
    lines = r"\n".join([*bad, *good])
    code, log = batch.run(0, f"{names}; printf '{lines}' >$STATS")
    assert code == 0, log
    text = (batch.root / "results/scenario-000000/result.json").read_bytes().decode(errors="replace")
    found = json.loads(text)
    assert found["files"] == {"a?b": 4, 'c?d\\"e': 1, "\ufffd": 1}
    assert (found["rows"], found["loss"], found["ok"], found["outputBytes"]) == (5, -0.0015, True, 6)
    assert not {"first", "nan", "id"} & set(found)
    assert sum("not added to result.json" in line for line in log) == 4


def test_skips_a_scenario_with_results(batch: Batch) -> None:
    batch.run(0, WRITE)
    code, log = batch.run(0, "echo again; exit 1", pod="pod-b")
    assert (code, log) == (0, ["VERDICT: PASS scenario=scenario-000000 has results already"])


def test_runs_a_scenario_again_whose_blobs_were_deleted(batch: Batch) -> None:
    batch.run(0, WRITE)
    for name in batch.files("results"):
        (batch.root / "results" / name).unlink()
    code, _ = batch.run(0, WRITE, pod="pod-b")
    assert code == 0
    assert batch.result("scenario-000000")["pod"] == "pod-b"
    assert batch.files("results/scenario-000000") == WRITTEN
    assert list((batch.root / "attempts").iterdir()) == []


def test_does_not_overwrite_results_that_were_deleted_in_part(batch: Batch) -> None:
    batch.run(0, WRITE)
    (batch.root / "results/scenario-000000/result.json").unlink()
    code, log = batch.run(0, WRITE, pod="pod-b")
    what = f"its outputs could not be moved to {batch.root}/results/scenario-000000"
    assert (code, log[-1]) == (1, f"VERDICT: FAIL scenario=scenario-000000 {what}")


def test_reads_the_names_of_scenarios_from_a_list(batch: Batch) -> None:
    (batch.root / "runs").mkdir(parents=True)
    (batch.root / "runs" / "1.txt").write_text("dawn\nnoon\nnight\n")
    batch.run(2, WRITE, LIST="runs/1.txt")
    assert batch.files("results") == [f"night/{file}" for file in WRITTEN]
    code, log = batch.run(3, WRITE, LIST="runs/1.txt")
    assert (code, "has no line 4" in log[-1]) == (64, True), "a retry cannot fix it"


def test_a_failed_attempt_keeps_its_log_and_no_output(batch: Batch) -> None:
    code, log = batch.run(0, f"{WRITE}; echo out of disk; exit 3")
    assert (code, log[-1]) == (3, "VERDICT: FAIL scenario=scenario-000000 failed, exit code 3")
    assert batch.files("attempts/scenario-000000") == ["pod-a/FAILED", "pod-a/log.txt"]
    assert "out of disk" in (batch.root / "attempts/scenario-000000/pod-a/log.txt").read_text()
    assert batch.files("results") == []
    batch.run(0, WRITE, pod="pod-b")
    assert batch.result("scenario-000000")["attempts"] == 2


def test_an_evicted_attempt_may_write_a_checkpoint_for_the_next_one(batch: Batch) -> None:
    script = f"trap 'mkdir -p $CHECKPOINT; echo step 5 >$CHECKPOINT/step; exit 9' TERM; {WRITE}; sleep 60 & wait"
    process = batch.start(0, "pod-a", ["bash", "-c", script])
    eventually(lambda: (batch.root / "attempts/scenario-000000/pod-a/output/lidar/a b").exists(), "it works", 20)
    process.send_signal(signal.SIGTERM)
    left = ["pod-a/EVICTED", "pod-a/log.txt"]
    eventually(lambda: batch.files("attempts/scenario-000000") == left, "it is marked, and its output is deleted", 20)
    kill(process)
    _, log = batch.run(0, "cat $CHECKPOINT/step; echo 1 >$OUTPUT/track", pod="pod-b")
    assert "step 5" in log
    assert batch.files("checkpoints") == []


def test_incomplete_outputs_are_no_results(batch: Batch) -> None:
    process = batch.start(0, "pod-a", ["bash", "-c", f"{WRITE}; exec sleep 60"])
    eventually(lambda: (batch.root / "attempts/scenario-000000/pod-a/output/lidar/a b").exists(), "it works", 20)
    kill(process)
    assert batch.files("results") == []
    assert batch.run(0, "echo 1 >$OUTPUT/other", pod="pod-b")[0] == 0
    assert batch.files("results/scenario-000000") == ["log.txt", "output/other", "result.json"]


def test_the_first_of_two_parallel_attempts_counts(batch: Batch) -> None:
    slow = batch.start(0, "pod-a", ["bash", "-c", "sleep 1; echo slow >$OUTPUT/track"])
    time.sleep(0.2)
    batch.run(0, "echo fast >$OUTPUT/track", pod="pod-b")
    text, _ = slow.communicate(timeout=60)
    assert (slow.returncode, "has results already" in text) == (0, True)
    assert batch.result("scenario-000000")["pod"] == "pod-b"
    assert (batch.root / "results/scenario-000000/output/track").read_text() == "fast\n"
    assert batch.files("attempts") == []


# --- the load of the image test-io ---


@pytest.fixture
def load(tmp_path: Path) -> Path:
    folder = tmp_path / "image"
    folder.mkdir()
    (folder / "test-io.sh").write_text((LOAD / "test-io.sh").read_text())
    (folder / "gpu-load.sh").write_text('echo "loading for $1"; trap "exit 143" TERM; sleep "$LOAD_TAKES" & wait $!\n')
    return folder / "test-io.sh"


def io_job(batch: Batch, load: Path, pod: str, seconds: str, takes: str = "0") -> subprocess.Popen[str]:
    return batch.start(3, pod, ["bash", str(load), seconds, "2", "4Ki"], LOAD_TAKES=takes)


def test_reads_inputs_writes_outputs_and_reports_throughput(batch: Batch, load: Path) -> None:
    (batch.folder / "input" / "drives").mkdir(parents=True)
    (batch.folder / "input" / "drives" / "1").write_bytes(b"d" * 5000)
    with io_job(batch, load, "pod-a", "30") as process:
        text, _ = process.communicate(timeout=60)
    assert "read 5000 bytes at " in text
    assert "wrote 8192 bytes at " in text
    found = batch.result("scenario-000003")
    assert found["files"] == {"output-0.bin": 4096, "output-1.bin": 4096}
    assert found["inputBytes"] == 5000
    assert {"inputSeconds", "outputSeconds"} <= set(found)


def test_a_scenario_reads_only_its_own_folder(batch: Batch, load: Path) -> None:
    (batch.folder / "input" / "scenario-000003").mkdir(parents=True)
    (batch.folder / "input" / "scenario-000003" / "own").write_bytes(b"o" * 70)
    (batch.folder / "input" / "other").write_bytes(b"d" * 5000)
    with io_job(batch, load, "pod-a", "30") as process:
        text, _ = process.communicate(timeout=60)
    assert "read 70 bytes" in text


def test_a_missing_dataset_is_reported_and_not_retried(batch: Batch, load: Path) -> None:
    with io_job(batch, load, "pod-a", "30") as process:
        text, _ = process.communicate(timeout=60)
    assert process.returncode == 64
    assert "the input container has no folder" in text
    assert "workloadOptions.resim.dataset" in text


def test_continues_the_load_after_an_eviction(batch: Batch, load: Path) -> None:
    (batch.folder / "input").mkdir()
    process = io_job(batch, load, "pod-a", "30", takes="60")
    log = batch.root / "attempts/scenario-000003/pod-a/log.txt"
    eventually(lambda: log.exists() and "loading for 30" in log.read_text(), "it loads", 20)
    time.sleep(1.1)
    process.send_signal(signal.SIGTERM)
    eventually(lambda: (log.parent / "EVICTED").exists(), "it is marked", 20)
    kill(process)
    with io_job(batch, load, "pod-b", "30") as again:
        text, _ = again.communicate(timeout=60)
    assert "continuing after" in text
    assert "loading for 30" not in text


@pytest.mark.parametrize(
    ("burn", "code", "verdict"),
    [
        (
            "printf '\\r50.0%%  proc 2 (4000 Gflop/s) \\r100.0%%  proc 4 (7000 Gflop/s) - 4 (800 Gflop/s) \\n'; "
            "printf '\\tGPU 0: OK\\n\\tGPU 1: OK\\n'",
            0,
            "VERDICT: PASS gpus=2 seconds=5 gflops=7800",
        ),
        ("printf '\\tGPU 0: FAULTY\\n'", 1, "ended with exit code 0; 0 GPUs are healthy, 1 are faulty"),
        ("echo 'No CUDA devices'; exit 19", 1, "ended with exit code 19; 0 GPUs are healthy, 0 are faulty"),
    ],
)
def test_the_gpu_load_reports_the_result_of_gpu_burn(tmp_path: Path, burn: str, code: int, verdict: str) -> None:
    (tmp_path / "gpu_burn").write_text(f"#!/bin/bash\n{burn}\n")
    (tmp_path / "gpu_burn").chmod(0o755)
    script = (LOAD / "gpu-load.sh").read_text().replace("/opt/gpu-burn", str(tmp_path))
    answer = subprocess.run(["bash", "-c", script, "gpu-load", "5"], capture_output=True, text=True, check=False)
    assert answer.returncode == code, answer
    assert answer.stdout.splitlines()[-1].endswith(verdict)
