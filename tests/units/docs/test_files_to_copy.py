"""The files that docs/adding-a-workload.md has to copy are as this project's own; tests/stories runs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from simulator.host.paths import ROOT
from tests.support.pages import PAGES, files

PAGE = ROOT / "docs" / "adding-a-workload.md"


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copied")
    for name, text in files(PAGE).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_no_file_is_there_already() -> None:
    named = [name for page in PAGES for name in files(page)]
    assert {"workloads/hello_gpu.py", "workloads/hello_nodes/__init__.py"} <= set(named)
    assert not [name for name in named if (ROOT / name).exists()]


@pytest.mark.parametrize("command", [["format", "--check", "--diff"], ["check"]], ids=" ".join)
def test_their_python_passes_make_check(copied: Path, command: list[str]) -> None:
    ruff = str(Path(sys.executable).with_name("ruff"))
    call = [ruff, *command, "--config", str(ROOT / "pyproject.toml"), "--no-cache", str(copied)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
