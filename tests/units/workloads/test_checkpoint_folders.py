"""Folders of the trainer's checkpoints, on a share where they are busy for a while. The module needs no torch."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from simulator.host.paths import ROOT

MODULE = ROOT / "docker" / "pytorch-pretraining" / "pretraining" / "folders.py"


@pytest.fixture
def folders() -> ModuleType:
    spec = importlib.util.spec_from_file_location("checkpoint_folders", MODULE)
    assert spec
    assert spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def finish(folders: ModuleType, folder: Path) -> None:
    """A checkpoint of one process."""
    part = folders.begin(folder, 10)
    folders.written(part, 0).touch()
    folders.finish(part, 1, {"steps": 10}, 2)


def busy(monkeypatch: pytest.MonkeyPatch, times: float) -> None:
    """The first renames are refused."""
    rename, left = Path.rename, [times]

    def refuse(path: Path, target: Path) -> Path:
        left[0] -= 1
        if left[0] >= 0:
            raise PermissionError(13, "Permission denied", str(path))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)


def test_a_folder_that_another_node_still_has_open_gets_its_name_a_moment_later(
    folders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy(monkeypatch, times=2)
    finish(folders, tmp_path)
    assert folders.newest(tmp_path, {}) == (tmp_path / "step-10", 10)


def test_one_that_nobody_may_rename_is_no_checkpoint(
    folders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy(monkeypatch, times=float("inf"))
    monkeypatch.setattr(folders, "_BUSY_S", 0.5)
    with pytest.raises(PermissionError):
        finish(folders, tmp_path)
    assert folders.newest(tmp_path, {}) is None
