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


def test_keeps_only_files_of_existing_pods_and_machines(cluster: Path) -> None:
    folders.Sweep(cluster)([make("there")], [NODE])
    kept = {str(path.relative_to(cluster)) for path in cluster.glob("*/*")}
    assert kept == {"pods/there", "pod-logs/ai_there_there", "nodes/n1", "shares/pvc-1"}
    assert [path.name for path in (cluster / "nodes/n1").iterdir()] == ["machine-2"]


def test_deletes_the_files_of_a_pod_that_is_deleted_later(cluster: Path) -> None:
    sweep = folders.Sweep(cluster)
    sweep([make("there"), make("gone")], [NODE])
    sweep([make("there"), make("gone")], [NODE])
    sweep([make("there")], [NODE])
    assert [path.name for path in (cluster / "pods").iterdir()] == ["there"]


def test_deletes_files_that_a_deleted_pod_wrote_last_at_the_next_sweep(cluster: Path) -> None:
    sweep = folders.Sweep(cluster)
    sweep([make("there")], [NODE])
    (cluster / "pods/gone").mkdir()
    sweep([make("there")], [NODE])
    assert [path.name for path in (cluster / "pods").iterdir()] == ["there"]
