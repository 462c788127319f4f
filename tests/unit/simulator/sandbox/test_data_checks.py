"""The data checks of images, which run their own modules in sandboxes."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s.objects import Object
from simulator.sandbox.spec import Mount
from tests.unit.simulator.sandbox.node import Node
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
def test_runs_the_module_of_the_image(tmp_path: Path, image: str, words: str, content: bytes, error: str) -> None:
    for name in ("data", "world"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / ("file.jsonl" if image == "ray-finetuning" else "file.bin")).write_bytes(content)
    command = ["python", "-m", *words.split()]
    container: Object = {"image": image, "command": command, "securityContext": {}, "volumeMounts": []}
    code, log = Node(tmp_path).run({"volumes": []}, container, mounts=(Mount(tmp_path / "data", DATA),))
    assert (code, error in log) == (1 if error else 0, True)
