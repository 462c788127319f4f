"""A job with an image that is unknown to the simulator, and the output of `make up` in a pipe. In order.

The first `up` is killed; test_recovery.py and `make kills` have more such cases.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from tests.e2e.killing import interrupted, under_way
from tests.support.checkout import Checkout, clients, kill

pytestmark = [pytest.mark.simulator, pytest.mark.long]
IMAGE = "docker.io/me/mine:1"
WHY = f"Faked: image {IMAGE} has no recipe in simulator/sandbox/recipes/ (docs/simulator.md, The sandbox)"
AGAIN = "pulumi up -s dev --replace '**:Job::health-check'"
SETTINGS = {"workloads": "health-check", "workloadOptions": {"health-check": {"image": IMAGE}}}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """A checkout whose stack `dev` has only the health check, with a user's image."""
    made = Checkout.copy(tmp_path_factory.mktemp("unknown-image"))
    file = made.folder / "Pulumi.dev.yaml"
    stack = yaml.safe_load(file.read_text())
    for key in ("modelSize", "storage"):
        del stack["config"][f"ai-on-aks:{key}"]
    stack["config"] |= {f"ai-on-aks:{key}": value for key, value in SETTINGS.items()}
    file.write_text(yaml.safe_dump(stack))
    yield made
    kill(clients(made.home))
    made.make("stop")


@pytest.fixture(scope="module")
def first(checkout: Checkout) -> subprocess.CompletedProcess[str]:
    """A `make up` after one that was killed while the cluster was being created."""
    interrupted(checkout, "up", lambda: under_way(checkout, "ManagedCluster"), "the cluster is being created")
    return checkout.make("up", check=False)


def test_up_continues_after_a_killed_one(first: subprocess.CompletedProcess[str]) -> None:
    assert "took over the lock of an update that was killed" in first.stdout


def test_the_job_completes_without_a_verdict(first: subprocess.CompletedProcess[str]) -> None:
    assert first.returncode != 0
    assert "health-check Complete (faked: nothing ran)\n" in first.stdout
    assert "VERDICT" not in first.stdout
    assert WHY in " ".join(first.stderr.split())
    assert f"  run it again: {AGAIN}\n" in first.stderr


def test_diagnosis_reports_the_unknown_image(checkout: Checkout) -> None:
    report = " ".join(checkout.inside("python -m diagnosis -n ai health-check").stdout.split())
    assert report.startswith("health-check: Complete ")
    assert report.endswith(WHY)


def test_in_a_pipe_the_output_has_phases_and_a_summary(first: subprocess.CompletedProcess[str]) -> None:
    assert " creating cluster\n" in first.stdout
    assert " creating workloads\n" in first.stdout
    assert re.search(r" resources: \d+ created, \d+ unchanged\n", first.stdout), "keeps resources of the killed update"
    assert "azure-native:" not in first.stdout
    assert first.stdout.index(" creating cluster\n") < first.stdout.index(" creating workloads\n")
    engine, _, _ = first.stdout.partition("waiting for the workloads")
    assert len(engine.splitlines()) < 30
    commands = ("kubectl logs ", "do: kubectl ", "health-check-")  # may be longer, for their names
    lines = [line for line in first.stdout.splitlines() if not line.strip().startswith(commands)]
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.usefixtures("first")
def test_with_a_recipe_the_job_runs_without_a_restart_of_the_simulator(checkout: Checkout) -> None:
    """Uses the files of docker/aksnhc under the name of the user's image."""
    recipes = checkout.folder / "simulator" / "sandbox" / "recipes"
    shutil.copy(recipes / "aksnhc.yaml", recipes / "mine.yaml")
    shutil.copytree(checkout.folder / "docker" / "aksnhc", checkout.folder / "docker" / "mine")
    checkout.inside(f"{AGAIN} --yes --skip-preview --non-interactive")
    output = checkout.make("up").stdout
    assert "health-check Complete\n" in output
    assert output.count("VERDICT: PASS") == 2
