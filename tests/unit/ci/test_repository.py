from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from simulator.host.paths import ROOT

LOCKS = ["requirements.txt", "requirements-dev.txt"]
NPM_LOCKS = sorted((ROOT / "simulator" / "tools" / "modules").glob("*/package-lock.json"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")


def requirements(lock: str) -> dict[str, str]:
    text = (ROOT / lock).read_text().replace("\\\n", " ")
    found = re.findall(r"^([\w.-]+)==(.*)$", text, re.MULTILINE)
    return dict(found)


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_have_hashes_and_no_urls(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert not re.search(r"https?://|file:|^\s*(--find-links|--index-url|--extra-index-url|-f )", text, re.MULTILINE)
    locked = requirements(lock)
    assert locked
    assert not [name for name, rest in locked.items() if "--hash=sha256:" not in rest]


@pytest.mark.parametrize("lock", NPM_LOCKS, ids=lambda path: path.parent.name)
def test_npm_locks_have_hashes_and_no_urls(lock: Path) -> None:
    packages = {name: package for name, package in json.loads(lock.read_text())["packages"].items() if name}
    assert packages
    assert not [name for name, package in packages.items() if not package["integrity"].startswith("sha512-")]
    assert not [name for name, package in packages.items() if "resolved" in package]


def test_locks_agree() -> None:
    program, everything = map(requirements, LOCKS)
    versions = {name: rest.split()[0] for name, rest in program.items()}
    assert not {
        name: rest for name, rest in everything.items() if name in versions and rest.split()[0] != versions[name]
    }


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_permissions_are_minimal(workflow: Path) -> None:
    text = workflow.read_text()
    assert not [line for line in text.splitlines() if "uses:" in line and not PINNED.search(line)]
    definition = yaml.safe_load(text)
    assert definition["permissions"] == {}
    assert all(job["permissions"] for job in definition["jobs"].values())
    assert "secrets." not in text


def test_the_workflow_with_write_access_runs_no_code_of_the_pull_request() -> None:
    definition = yaml.safe_load((ROOT / ".github" / "workflows" / "comment.yml").read_text())
    triggers = definition[True]  # YAML 1.1 reads `on` as true
    assert list(triggers) == ["workflow_run"]
    [job] = definition["jobs"].values()
    assert [step["uses"].split("@")[0] for step in job["steps"]] == [
        "actions/download-artifact",
        "actions/github-script",
    ]
