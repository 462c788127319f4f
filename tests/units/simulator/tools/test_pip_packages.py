"""Tools from the Python package index: what is installed, what is kept, and what the user is told when it cannot be."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from simulator.tools.catalogue import Tool
from simulator.tools.errors import ToolError
from simulator.tools.pip_packages import packages
from tests.units.simulator.tools.conftest import Workshop

METADATA = "Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def make_wheel(file: Path, said: str) -> str:
    """A package `hello` whose executable prints `said`; the wheel's hash."""
    script = f"#!/bin/sh\necho {said}\n"
    parts = {"METADATA": METADATA, "WHEEL": WHEEL}
    files = {"hello-1.0.data/scripts/hello": script, "hello.py": ""} | {
        f"hello-1.0.dist-info/{name}": text for name, text in parts.items()
    }
    record = "".join(f"{name},,\n" for name in [*files, "hello-1.0.dist-info/RECORD"])
    with zipfile.ZipFile(file, "w") as wheel:
        for name, text in {**files, "hello-1.0.dist-info/RECORD": record}.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100755 << 16  # an executable file
            wheel.writestr(entry, text)
    return sha256(file.read_bytes()).hexdigest()


@pytest.fixture
def tool(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """A tool in a package of a folder that is the only index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(workshop.root))
    lock(workshop, make_wheel(workshop.root / "hello-1.0-py3-none-any.whl", "made"))
    return workshop.tool(build=None, pip={"module": "hello"})


def lock(workshop: Workshop, digest: str) -> None:
    text = f"hello==1.0 --hash=sha256:{digest}\n"
    (workshop.root / "modules" / "hello" / "requirements.txt").write_text(text)


def test_installs_from_the_lock(workshop: Workshop, tool: Tool) -> None:
    workshop.installer(tool).install([tool])
    executable = workshop.root / "cache" / "bin" / "hello"
    assert subprocess.run([executable], capture_output=True, text=True, check=True).stdout == "made\n"
    assert (packages(executable) / "hello-1.0.dist-info").is_dir()
    assert workshop.installer(tool).missing([tool]) == []


def test_bytecode_is_where_a_sandbox_finds_it(workshop: Workshop, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(workshop.root / "pycache"))  # as the Makefile has it
    workshop.installer(tool).install([tool])
    source = packages(workshop.root / "cache" / "bin" / "hello") / "hello.py"
    bytecode = source.parent / "__pycache__" / f"hello.{sys.implementation.cache_tag}.pyc"
    made_of = int.from_bytes(bytecode.read_bytes()[8:12], "little")
    assert made_of == int(source.stat().st_mtime)


def test_another_lock_is_installed_anew(workshop: Workshop, tool: Tool) -> None:
    workshop.installer(tool).install([tool])
    lock(workshop, make_wheel(workshop.root / "hello-1.0-py3-none-any.whl", "anew"))
    workshop.installer(tool).install([tool])
    executable = workshop.root / "cache" / "bin" / "hello"
    assert subprocess.run([executable], capture_output=True, text=True, check=True).stdout == "anew\n"


def test_a_file_with_another_hash_is_refused(workshop: Workshop, tool: Tool) -> None:
    lock(workshop, "0" * 64)
    with pytest.raises(ToolError, match=r"pip exited with 1\)(.|\n)*DO NOT MATCH THE HASHES(.|\n)*pip config list"):
        workshop.installer(tool).install([tool])
    assert not list((workshop.root / "cache").glob("tools/*"))
