"""Containers that check data run their images' Python modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s.objects import Object
from simulator.sandbox.spec import Mount
from tests.unit.simulator.sandbox.node import Node
from workloads._lib.team_training import DATA

LINES, TOKENS = (
    ("ray-finetuning", "finetuning.lines /data"),
    ("pytorch-pretraining", "pretraining.token_files /data 512"),
)


@pytest.mark.parametrize(
    ("image", "words", "file", "content", "error"),
    [
        (*LINES, "file.jsonl", b"\xff\xfe{\x00}\x00", "/data/file.jsonl:1 is not UTF-8"),
        (*LINES, "file.jsonl", b'{"text": "a"}\n', ""),
        (*TOKENS, "file.bin", b"\x93NUMPY\1\0", "numpy"),
        (*TOKENS, "file.bin", b"\1\0\2\0", ""),
        ("ray-finetuning", "finetuning.missing /data", "file", b"", "No module named finetuning.missing"),
    ],
)
def test_runs_a_module_of_the_image(
    tmp_path: Path, image: str, words: str, file: str, content: bytes, error: str
) -> None:
    for name in ("data", "world"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / file).write_bytes(content)
    container: Object = {"image": image, "command": ["python", "-m", *words.split()]}
    container |= {"securityContext": {}, "volumeMounts": []}
    code, log = Node(tmp_path).run({"volumes": []}, container, mounts=(Mount(tmp_path / "data", DATA),))
    assert code == (1 if error else 0), log
    assert error in log
