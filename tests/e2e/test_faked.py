"""A job whose image the simulator does not know, from `make up` in a pipe: it is told as faked until it has a recipe.

An `up` before it was killed, of which nothing is left to do by hand; test_recovery.py and `make kills` have many more.

One story, in the order of the file.
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
    """Of dev's settings, but of its workloads only the health check, with an image of the user's own."""
    made = Checkout.copy(tmp_path_factory.mktemp("faked"))
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
    """The `make up` after one that was killed while the cluster was being created."""
    interrupted(checkout, "up", lambda: under_way(checkout, "ManagedCluster"), "the cluster is being created")
    return checkout.make("up", check=False)


def test_it_goes_on_where_another_was_killed(first: subprocess.CompletedProcess[str]) -> None:
    assert "took over the lock of an update that was killed" in first.stdout


def test_it_is_complete_and_has_not_passed(first: subprocess.CompletedProcess[str]) -> None:
    assert first.returncode != 0
    assert "health-check Complete (faked: nothing ran)\n" in first.stdout
    assert "VERDICT" not in first.stdout
    assert WHY in " ".join(first.stderr.split())
    assert f"  run it again: {AGAIN}\n" in first.stderr


def test_diagnosis_says_so_too_which_knows_of_no_simulator(checkout: Checkout) -> None:
    told = " ".join(checkout.inside("python -m diagnosis -n ai health-check").stdout.split())
    assert told.startswith("health-check: Complete ")
    assert told.endswith(WHY)


def test_in_a_pipe_the_engine_s_lines_are_phases_and_a_summary(first: subprocess.CompletedProcess[str]) -> None:
    assert " creating cluster\n" in first.stdout
    assert " creating workloads\n" in first.stdout
    assert re.search(r" resources: \d+ created, \d+ unchanged\n", first.stdout), "what the killed update made is kept"
    assert "azure-native:" not in first.stdout
    assert first.stdout.index(" creating cluster\n") < first.stdout.index(" creating workloads\n")
    engine, _, _ = first.stdout.partition("waiting for the workloads")
    assert len(engine.splitlines()) < 30
    commands = ("kubectl logs ", "do: kubectl ", "health-check-")  # may be longer, for their names
    lines = [line for line in first.stdout.splitlines() if not line.strip().startswith(commands)]
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.usefixtures("first")
def test_with_a_recipe_it_really_runs_though_the_simulator_was_not_started_again(checkout: Checkout) -> None:
    """What the image holds, docker/aksnhc has, here under the user's own name."""
    recipes = checkout.folder / "simulator" / "sandbox" / "recipes"
    shutil.copy(recipes / "aksnhc.yaml", recipes / "mine.yaml")
    shutil.copytree(checkout.folder / "docker" / "aksnhc", checkout.folder / "docker" / "mine")
    checkout.inside(f"{AGAIN} --yes --skip-preview --non-interactive")
    said = checkout.make("up").stdout
    assert "health-check Complete\n" in said
    assert said.count("VERDICT: PASS") == 2
