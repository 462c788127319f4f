from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.sandbox.library import olmo_data
from tests.unit.simulator.sandbox.blob_server import Blobs, blob_server
from tests.unit.simulator.sandbox.training_pods import prepare

FOLDER = "preprocessed/olmo-mix/v1_5/gpt-neox-20b-pii-special"
FILES = (f"{FOLDER}/part-000-00000.npy", f"{FOLDER}/part-000-00001.npy")
MANIFEST = "prepared/OLMo-1B-2840226687.tsv"
ALIVE = "prepared/OLMo-1B-2840226687.alive"
BLOCKS = {"BLOCK_BYTES": "65536", "PARALLEL": "1"}  # four blocks a file


@pytest.fixture
def blobs(tmp_path: Path) -> Iterator[Blobs]:
    with blob_server(tmp_path / "pki") as served:
        yield served


def content(path: str) -> bytes:
    return olmo_data.content(f"/{path}")


@pytest.mark.parametrize("fetches", [True, False], ids=["by the service", "through the pod"])
def test_copies_the_files_of_the_config(tmp_path: Path, blobs: Blobs, fetches: bool) -> None:
    blobs.fetches = fetches
    code, log = prepare(tmp_path, blobs)
    assert code == 0, log
    assert {path: blobs.stored[path] for path in FILES} == {path: content(path) for path in FILES}
    lines = blobs.stored[MANIFEST].decode().splitlines()
    assert lines == [f"{olmo_data.FILE_BYTES}\t{path}" for path in FILES]
    assert f"Prepared: 2 files, {2 * olmo_data.FILE_BYTES} bytes." in log
    assert ("goes through this pod" in log) != fetches


def test_copies_nothing_twice(tmp_path: Path, blobs: Blobs) -> None:
    prepare(tmp_path, blobs)
    before = len(blobs.written_blocks)
    code, log = prepare(tmp_path, blobs)
    assert code == 0, log
    assert len(blobs.written_blocks) == before
    assert log.count("exists: ") == 2


def test_writes_a_heartbeat(tmp_path: Path, blobs: Blobs) -> None:
    code, log = prepare(tmp_path, blobs, HEARTBEAT_S="0.2")
    assert code == 0, log
    assert blobs.puts.count(ALIVE) > 1


def test_continues_an_interrupted_copy(tmp_path: Path, blobs: Blobs) -> None:
    blobs.blocks_before_outage = 6
    code, log = prepare(tmp_path, blobs, **BLOCKS)
    assert code == 1, log
    assert "a retry copies the rest" in log
    assert MANIFEST not in blobs.stored
    blobs.blocks_before_outage = None
    code, log = prepare(tmp_path, blobs, **BLOCKS)
    assert code == 0, log
    assert len(blobs.written_blocks) == 8, "each block once"
    assert all(blobs.stored[path] == content(path) for path in FILES)


def test_copies_a_blob_of_the_wrong_size_again(tmp_path: Path, blobs: Blobs) -> None:
    blobs.stored[FILES[0]] = b"half of it"
    code, log = prepare(tmp_path, blobs)
    assert code == 0, log
    assert f"wrong size: {FILES[0]} has 10 bytes instead of {olmo_data.FILE_BYTES}" in log
    assert blobs.stored[FILES[0]] == content(FILES[0])


def test_rejects_an_incomplete_copy(tmp_path: Path, blobs: Blobs) -> None:
    blobs.cut_bytes = 1
    code, log = prepare(tmp_path, blobs)
    assert code == 1, log
    assert f"has {olmo_data.FILE_BYTES - 1} bytes after copying instead of {olmo_data.FILE_BYTES}" in log
    assert MANIFEST not in blobs.stored


def test_a_rejected_sas_ends_the_job_and_is_not_logged(tmp_path: Path, blobs: Blobs) -> None:
    code, log = prepare(tmp_path, blobs, sas="sp=rcwl&sig=expired")
    assert code == 64, log
    assert "cannot read blobs (HTTP 403): it has expired or lacks a permission" in log
    assert "sig=" not in log


def test_rejects_a_missing_config(tmp_path: Path, blobs: Blobs) -> None:
    code, log = prepare(tmp_path, blobs, CONFIG="/opt/OLMo/configs/none.yaml")
    assert code == 64
    assert "the image has no training config /opt/OLMo/configs/none.yaml" in log
