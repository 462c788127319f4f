"""What pods and machines leave on this machine goes with them, also while no simulator ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.kubelet import folders
from tests.unit.simulator.kubelet.pods import make

NODE = {"metadata": {"name": "n1", "uid": "machine-2"}}


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    for path in ("pods/there/run", "pods/gone/volumes/data", "nodes/n1/machine-1/mnt", "nodes/n1/machine-2/mnt"):
        (tmp_path / path).mkdir(parents=True)
    for path in ("pod-logs/ai_there_there/main", "pod-logs/ai_there_gone/main"):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "0.log").touch()
    (tmp_path / "shares/pvc-1").mkdir(parents=True)
    return tmp_path


def test_only_what_is_there_keeps_its_files(cluster: Path) -> None:
    folders.Sweep(cluster)([make("there")], [NODE])
    kept = {str(path.relative_to(cluster)) for path in cluster.glob("*/*")}
    assert kept == {"pods/there", "pod-logs/ai_there_there", "nodes/n1", "shares/pvc-1"}
    assert [path.name for path in (cluster / "nodes/n1").iterdir()] == ["machine-2"]


def test_what_goes_later_takes_its_files_along_then(cluster: Path) -> None:
    sweep = folders.Sweep(cluster)
    sweep([make("there"), make("gone")], [NODE])
    sweep([make("there"), make("gone")], [NODE])
    sweep([make("there")], [NODE])
    assert [path.name for path in (cluster / "pods").iterdir()] == ["there"]


def test_what_a_pod_still_wrote_as_it_went_goes_the_next_time(cluster: Path) -> None:
    sweep = folders.Sweep(cluster)
    sweep([make("there")], [NODE])
    (cluster / "pods/gone").mkdir()
    sweep([make("there")], [NODE])
    assert [path.name for path in (cluster / "pods").iterdir()] == ["there"]
