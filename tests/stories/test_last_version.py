"""A stack that the last version of the program brought up: this one in its place replaces nothing of the platform.

Jobs that would be others are run anew, as always, with ConfigMaps of other scripts: their pods cannot be changed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator.host.paths import ROOT
from tests.support.checkout import Checkout
from tests.support.states import LAST_COMMIT

pytestmark = [pytest.mark.simulator, pytest.mark.long]
JOBS = ("batch/v1:Job", "batch.volcano.sh/v1alpha1:Job", "core/v1:ConfigMap")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """One whose stack `dev` the last version has brought up, and whose files, and simulator, are this version's now."""
    there = subprocess.run(["git", "cat-file", "-e", LAST_COMMIT], cwd=ROOT, check=False, capture_output=True)
    if there.returncode:
        pytest.skip(f"this clone does not have commit {LAST_COMMIT}: git fetch --unshallow")
    folder = tmp_path_factory.mktemp("last")
    made = Checkout(folder / "checkout", folder / "tmp")
    made.scratch.mkdir()
    extract(made.folder)
    try:
        made.make("up")
        replace_files(made.folder, Checkout.copy(tmp_path_factory.mktemp("this")).folder)
        assert "the code of this checkout has changed" in " ".join(made.make("start").stderr.split())
        yield made
    finally:
        made.make("stop")


def extract(folder: Path) -> None:
    """The files of the last version."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", LAST_COMMIT], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive, check=True)


def replace_files(folder: Path, by: Path) -> None:
    """As `git pull` does; what the simulator keeps stays."""
    for old in folder.iterdir():
        if old.name != ".simulator":
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    shutil.copytree(by, folder, dirs_exist_ok=True)


def of_a_job(urn: str) -> bool:
    made_by, _, kind = urn.split("::")[2].rpartition("$kubernetes:")
    return made_by.startswith("ai-on-aks:workloads/") and kind in JOBS


def test_nothing_but_jobs_is_replaced_or_deleted(checkout: Checkout) -> None:
    told = checkout.inside("pulumi preview -s dev --json").stdout
    steps: list[dict[str, Any]] = json.loads(told[told.index("{") :])["steps"]
    gone = {step["urn"] for step in steps if "replace" in step["op"] or "delete" in step["op"]}
    assert not {urn for urn in gone if not of_a_job(urn)}
    assert checkout.inside("pulumi up -s dev --yes").returncode == 0
    assert checkout.inside("pulumi preview -s dev --expect-no-changes").returncode == 0
