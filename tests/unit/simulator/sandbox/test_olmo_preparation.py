"""OLMo's real preparation in a real sandbox: data copied, interrupted and damaged."""

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


def whole(path: str) -> bytes:
    return olmo_data.content(f"/{path}")


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
