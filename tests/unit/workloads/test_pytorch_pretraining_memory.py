from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from config.data.skus import sku
from tests.support.case_files import case_table
from tests.support.docker_modules import imported
from workloads._lib.team_training import USABLE
from workloads.metaseq.sizes import models
from workloads.pytorch_pretraining import manifests, memory
from workloads.pytorch_pretraining.options import PretrainingOptions

ZERO, FSDP, RECOMPUTED = (False, False), (True, False), (True, True)
"""Whether all is sharded, and whether activations are recomputed."""


def own(name: str) -> Any:
    return imported("pytorch-pretraining", f"pretraining.{name}")


def shape(options: PretrainingOptions) -> Any:
    size = options.size
    heads = size.width // manifests.HEAD
    return own("shape").Shape(size.layers, size.width, heads, options.vocabulary, options.sequence)


@pytest.mark.parametrize("size", models().sizes)
@pytest.mark.parametrize("more", [{}, {"sequence": 8192}, {"vocabulary": 131072}, {"fp8": True}])
def test_settings_and_trainer_estimate_the_same_memory(size: str, more: dict[str, Any]) -> None:
    options = PretrainingOptions.model_validate({"modelSize": size, **more})
    assert memory.parameters(options) == shape(options).parameters
    trainer = own("memory")
    for gpus in (1, 8, 24):
        ways = trainer.ways(gpus)
        least = min(trainer.needed(shape(options), 1, gpus, way, fp8=options.fp8) for way in ways)
        assert memory.bytes_per_gpu(options, gpus) == pytest.approx(least)
    assert own("memory").USABLE == USABLE


@case_table(__file__, "measured", file="pretraining_memory")
def test_the_estimate_is_close_to_measurements(size: str, at_once: int, gpus: int, fp8: bool, gib: float) -> None:
    options = PretrainingOptions.model_validate({"modelSize": size})
    assert own("memory").needed(shape(options), at_once, gpus, fp8=fp8) / 2**30 == pytest.approx(gib, rel=0.1)


@case_table(__file__, "measured on two GPUs", file="pretraining_memory")
def test_the_estimate_is_close_to_measurements_with_sharding(
    size: str, at_once: int, way: tuple[bool, bool], gib: float
) -> None:
    found = shape(PretrainingOptions.model_validate({"modelSize": size, "sequence": 2048}))
    assert own("memory").needed(found, at_once, 2, own("memory").Way(*way)) / 2**30 == pytest.approx(gib, rel=0.1)


@case_table(__file__, "fits", file="pretraining_memory")
def test_knows_which_models_fit(size: str, vm_sku: str, gpus: int, fits: bool) -> None:
    assert memory.fits(PretrainingOptions.model_validate({"modelSize": size}), sku(vm_sku), gpus) is fits


def test_the_trainer_plans_the_fastest_way_that_fits_with_the_largest_micro_batch() -> None:
    trainer = own("memory")
    small, large, largest = (
        shape(PretrainingOptions.model_validate({"modelSize": size})) for size in ("1.3b", "13b", "66b")
    )

    def planned(*arguments: Any, **more: Any) -> tuple[bool, bool, int]:
        found = trainer.plan(*arguments, **more)
        return found.way.sharded, found.way.recomputes, found.micro

    assert planned(small, 512, 8, 80e9) == (*ZERO, 16)
    assert planned(small, 512, 8, 150e9) == (*ZERO, 32)
    assert planned(small, 24, 8, 150e9) == (*ZERO, 3), "3 divides a GPU's part of the batch"
    assert planned(small, 24, 8, None) == (*ZERO, 1)
    assert planned(large, 512, 8, 80e9) == (*FSDP, 2), "six bytes of each parameter are too many"
    assert planned(largest, 512, 16, 85e9)[:2] == RECOMPUTED
    assert planned(small, 1, 1, 29e9) == (False, True, 1), "one GPU cannot shard"
    with pytest.raises(ValueError, match="8 GPUs cannot share a batch of 12 sequences equally"):
        trainer.plan(small, 12, 8, 80e9)
    with pytest.raises(ValueError, match="micro-batches of 3 do not divide the 4 sequences of a GPU: use 1, 2, 4"):
        trainer.plan(small, 4, 1, 80e9, chosen=3)
    with pytest.raises(ValueError, match="7 heads cannot share the width 2048 equally"):
        trainer.plan(replace(small, heads=7), 8, 8, 80e9)
    with pytest.raises(ValueError, match="use more GPUs, or fewer layers"):
        trainer.plan(small, 8, 8, 3e9)


def test_a_checkpoint_is_complete_with_all_shares_and_two_are_kept(tmp_path: Path) -> None:
    folders, about = own("folders"), {"layers": 2}
    for step in (10, 20, 30):
        part = folders.begin(tmp_path, step)
        assert folders.newest(tmp_path, about) == (None if step == 10 else (tmp_path / f"step-{step - 10}", step - 10))
        for rank in range(2):
            folders.written(part, rank).touch()
        folders.finish(part, 2, {**about, "steps": step}, keep=2)
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["step-20", "step-30"]


def test_deletes_incomplete_checkpoints_and_rejects_those_of_other_models(tmp_path: Path) -> None:
    folders = own("folders")
    folders.written(folders.begin(tmp_path, 10), 0).touch()
    folders.clear(tmp_path)
    assert list(tmp_path.iterdir()) == []
    folders.finish(folders.begin(tmp_path, 20), 0, {"layers": 2, "steps": 20}, keep=2)
    with pytest.raises(folders.CheckpointError, match=r"step-20 belongs to another training: layers is 2 instead of 3"):
        folders.newest(tmp_path, {"layers": 3})


def fail_renames(monkeypatch: pytest.MonkeyPatch, times: float) -> None:
    rename, left = Path.rename, [times]

    def fail(path: Path, target: Path) -> Path:
        left[0] -= 1
        if left[0] >= 0:
            raise PermissionError(13, "Permission denied", str(path))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)


@pytest.mark.parametrize("times", [2, float("inf")], ids=["busy", "always busy"])
def test_retries_to_rename_a_busy_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: float) -> None:
    """On a share, another node may have its files open."""
    folders = own("folders")
    monkeypatch.setattr(folders, "_BUSY_S", 0.5 if times > 2 else folders._BUSY_S)
    fail_renames(monkeypatch, times)
    part = folders.begin(tmp_path, 10)
    folders.written(part, 0).touch()
    if times > 2:
        with pytest.raises(PermissionError):
            folders.finish(part, 1, {"steps": 10}, 2)
        assert folders.newest(tmp_path, {}) is None
    else:
        folders.finish(part, 1, {"steps": 10}, 2)
        assert folders.newest(tmp_path, {}) == (tmp_path / "step-10", 10)


def test_reports_speed_and_mfu(tmp_path: Path) -> None:
    report, found = own("report"), shape(PretrainingOptions.model_validate({"modelSize": "1.3b"}))
    row = report.metrics(found, 32, 989e12, step=10, loss=1.5, gradient=0.25, seconds=1.0)
    assert report.line(row) == "step 10: loss 1.5000, gradient 0.25, 65,536 tokens/s, MFU 0.604"
    report.keep(tmp_path, row)
    assert json.loads((tmp_path / "metrics.jsonl").read_text()) == row
