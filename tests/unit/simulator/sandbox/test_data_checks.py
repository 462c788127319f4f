"""The checks of data files in sandboxes of the images that have them: the images' own modules, run as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.data import skus
from simulator.sandbox import sandbox
from simulator.sandbox.spec import Mount, SandboxSpec
from simulator.world.hardware import node_hardware
from tests.support.pools import H100
from tests.unit.simulator.sandbox.sandboxes import NAMESPACE, node_name
from workloads._lib.team_training import DATA


@pytest.mark.parametrize(
    ("image", "words", "content", "error"),
    [
        ("ray-finetuning", "finetuning.lines /data", b"\xff\xfe{\x00}\x00", "/data/file.jsonl:1 is not UTF-8"),
        ("ray-finetuning", "finetuning.lines /data", b'{"text": "a"}\n', ""),
        ("pytorch-pretraining", "pretraining.token_files /data 512", b"\x93NUMPY\1\0", "begins with a header of numpy"),
        ("pytorch-pretraining", "pretraining.token_files /data 512", b"\1\0\2\0", ""),
        ("ray-finetuning", "finetuning.missing /data", b"", "No module named finetuning.missing"),
    ],
)
def test_the_module_of_the_image_runs_as_it_is(
    tmp_path: Path, image: str, words: str, content: bytes, error: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / ("file.jsonl" if image == "ray-finetuning" else "file.bin")).write_bytes(content)
    spec = SandboxSpec(
        pod=f"{NAMESPACE}/check",
        image=image,
        argv=("python", "-m", *words.split()),
        hostname="check",
        hardware=node_hardware(skus.sku(H100), node_name(0), []),
        run_dir=tmp_path / "run",
        world_dir=tmp_path / "world",
        env={},
        mounts=(Mount(tmp_path / "data", DATA),),
    )
    (tmp_path / "world").mkdir()
    log = tmp_path / "log"
    with log.open("wb") as file:
        code = sandbox.start(spec, file.fileno()).wait(60)
    assert (code, error in log.read_text()) == (1 if error else 0, True), log.read_text()
