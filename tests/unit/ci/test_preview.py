from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from simulator.host.paths import ROOT

PLATFORM = "config:\n  ai-on-aks:vmSku: Standard_ND96isr_H100_v5\n"
CONSUMER = "config:\n  ai-on-aks:platformStack: dev\n"
MAKE = """#!/bin/sh
case "$3" in INSIDE=dev) exit 1 ;; esac
[ "$2" = env ] && echo "export SIMULATOR_PYTHON='$0.python'"
[ "$3" ] && echo "$2 $3" >>"$CALLS"
exit 0
"""
PYTHON = """#!/bin/sh
echo "simulator $3" >>"$CALLS"
"""
PULUMI = """#!/bin/sh
called=$(echo "$*" | sed -E 's/ --(non-interactive|color never|no-select|yes|skip-preview|diff)//g')
echo "$called" >>"$CALLS"
echo "$1 printed something"
[ "$called" != "$FAILING" ]
"""


@dataclass(frozen=True)
class Previews:
    code: int
    calls: list[str]
    folder: Path

    def text(self, stack: str) -> str:
        return (self.folder / f"{stack}.txt").read_text()


@pytest.fixture
def preview(tmp_path: Path) -> Callable[..., Previews]:
    project, tools, calls = tmp_path / "project", tmp_path / "tools", tmp_path / "calls"
    (project / ".ci").mkdir(parents=True)
    shutil.copy2(ROOT / ".ci" / "preview", project / ".ci")
    inside = CONSUMER.replace("dev", "private")
    platforms = dict.fromkeys(("alone", "dev", "private"), PLATFORM)
    for stack, text in {**platforms, "health-check": CONSUMER, "a-job": CONSUMER, "inside": inside}.items():
        (project / f"Pulumi.{stack}.yaml").write_text(text)
    tools.mkdir()
    for name, text in {"make": MAKE, "make.python": PYTHON, "pulumi": PULUMI}.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)

    def run(failing: str = "nothing") -> Previews:
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "CALLS": str(calls), "FAILING": failing}
        command = [str(project / ".ci" / "preview"), str(tmp_path / "previews")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
        return Previews(done.returncode, calls.read_text().splitlines(), tmp_path / "previews")

    return run


def test_previews_platforms_first_and_deploys_those_with_consumers(preview: Callable[..., Previews]) -> None:
    done = preview()
    assert done.code == 0
    assert [call for call in done.calls if "init" not in call] == [
        "simulator start",
        "preview --stack alone",
        "preview --stack dev",
        "tools STACK=dev",
        "up --stack dev",
        "preview --stack private",
        "tools STACK=private",
        "up --stack private",
        "env INSIDE=private",
        "up --stack private",
        "preview --stack a-job",
        "preview --stack health-check",
        "env INSIDE=private",
        "preview --stack inside",
        "simulator clean",
    ]
    stacks = {"alone", "dev", "private", "a-job", "health-check", "inside"}
    assert {file.stem for file in done.folder.iterdir()} == stacks
    assert done.text("dev") == "preview printed something\n"


@pytest.mark.parametrize("failing", ["preview --stack alone", "preview --stack a-job", "up --stack dev"])
def test_records_a_failure_and_previews_the_other_stacks(preview: Callable[..., Previews], failing: str) -> None:
    command, _, stack = failing.split()
    done = preview(failing)
    assert done.code == 1
    assert f"{command} printed something" in done.text(stack)
    assert done.calls[-2:] == ["preview --stack inside", "simulator clean"]


def test_records_a_stack_that_cannot_be_created(preview: Callable[..., Previews]) -> None:
    done = preview("stack init --stack dev")
    assert done.code == 1
    assert done.text("dev") == "stack failed:\nstack printed something\n"
    assert "preview --stack dev" not in done.calls
