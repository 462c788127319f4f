from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.case_files import case_table
from tests.support.sizes import H200
from tests.unit.simulator.sandbox.ray_and_vllm_pods import Inference

GATED = "meta-llama/Llama-3.1-8B-Instruct"


def test_answers_the_batch_once_and_downloads_the_model_once(tmp_path: Path) -> None:
    batch = Inference(tmp_path)
    ended = batch.run()
    code, log = ended["load-generator"]
    assert (code, ended["vllm"][0]) == (0, 0), ended
    assert "Successful requests:                     40        \n" in log
    assert "\ntime to first token " in log
    assert "Time spent downloading weights" in ended["vllm"][1]
    first = batch.result.read_text()
    result = json.loads(first)
    assert (result["completed"], result["failed"], result["total_output_tokens"]) == (40, 0, 40 * 128)
    assert result["gpu"] == "H100"
    assert result["mean_tpot_ms"] < result["p99_ttft_ms"] < result["mean_e2el_ms"]
    assert [file.name for file in batch.result.parent.iterdir()] == [batch.result.name]
    ended = batch.run()
    assert {code for code, _ in ended.values()} == {0}
    assert "results of an earlier run exist" in ended["load-generator"][1]
    assert batch.result.read_text() == first
    batch.options = {"run": 2}
    ended = batch.run()
    assert {code for code, _ in ended.values()} == {0}
    assert "Time spent downloading weights" not in ended["vllm"][1]
    assert "Model loading took" in ended["vllm"][1]


def test_faster_memory_makes_tokens_faster(tmp_path: Path) -> None:
    seen = {}
    for sku in ("Standard_ND96isr_H100_v5", H200):
        (tmp_path / sku).mkdir()
        batch = Inference(tmp_path / sku, sku=sku)
        batch.run()
        seen[sku] = json.loads(batch.result.read_text())["mean_tpot_ms"]
    assert seen[H200] < seen["Standard_ND96isr_H100_v5"]


@case_table(__file__, "refused")
def test_a_server_that_cannot_start_fails_the_pod(tmp_path: Path, options: dict[str, object], text: str) -> None:
    ended = Inference(tmp_path, options=options).run()
    assert text in ended["vllm"][1]
    assert "the server ended before the batch, with exit code 1" in ended["vllm"][1]
    assert "the server has ended; see the log of container vllm" in ended["load-generator"][1]
    assert {code for code, _ in ended.values()} == {1}


def test_downloads_a_gated_model_with_a_token(tmp_path: Path) -> None:
    ended = Inference(tmp_path, options={"model": GATED, "huggingFaceToken": "a-token"}).run()
    assert {code for code, _ in ended.values()} == {0}, ended


def _once_begun(act: Callable[[Inference], None]) -> Callable[[Inference], None]:
    def meanwhile(batch: Inference) -> None:
        if "Starting main benchmark run" in batch.log("load-generator"):
            act(batch)

    return meanwhile


@pytest.mark.parametrize(("killed", "other"), [("load-generator", 0), ("vllm", 1)])
def test_a_killed_container_ends_the_other_one(tmp_path: Path, killed: str, other: int) -> None:
    kill = _once_begun(lambda batch: batch.processes[killed].kill())
    batch = Inference(tmp_path, options={"prompts": 4000}, silence_s=4, meanwhile=kill)
    ended = batch.run()
    assert ended.pop(killed)[0] != 0
    assert [code for code, _ in ended.values()] == [other]
    assert not batch.result.exists()


def test_a_lost_gpu_ends_both_containers(tmp_path: Path) -> None:
    lose = _once_begun(lambda batch: setattr(batch, "lost_gpus", True))
    ended = Inference(tmp_path, options={"prompts": 4000}, meanwhile=lose).run()
    assert {code for code, _ in ended.values()} == {1}
    assert "EngineDeadError" in ended["vllm"][1]
