from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
import yaml

from tests.support.checkout import Checkout

pytestmark = [pytest.mark.simulator, pytest.mark.long]
IMAGE = "docker.io/me/mine:1"
WHY = f"Stubbed: image {IMAGE} has no recipe in simulator/sandbox/recipes/ (docs/simulator.md, The sandbox)"
AGAIN = "pulumi up -s dev --replace '**:Job::health-check'"
SETTINGS = {"workloads": "health-check", "workloadOptions": {"health-check": {"image": IMAGE}}}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = Checkout.copy(tmp_path_factory.mktemp("unknown-image"))
    file = made.folder / "Pulumi.dev.yaml"
    stack = yaml.safe_load(file.read_text())
    for key in ("modelSize", "storage"):
        del stack["config"][f"ai-on-aks:{key}"]
    stack["config"] |= {f"ai-on-aks:{key}": value for key, value in SETTINGS.items()}
    file.write_text(yaml.safe_dump(stack))
    yield made
    made.make("stop")


def test_the_job_completes_without_a_verdict(checkout: Checkout) -> None:
    first = checkout.make("up", check=False)
    assert first.returncode != 0
    assert "health-check Complete (stubbed: no process ran)\n" in first.stdout
    assert "VERDICT" not in first.stdout
    assert WHY in " ".join(first.stderr.split())
    assert f"  run it again: {AGAIN}\n" in first.stderr


def test_with_a_recipe_the_job_runs_without_a_restart_of_the_simulator(checkout: Checkout) -> None:
    """Uses docker/aksnhc's files under the user's image name."""
    recipes = checkout.folder / "simulator" / "sandbox" / "recipes"
    shutil.copy(recipes / "aksnhc.yaml", recipes / "mine.yaml")
    shutil.copytree(checkout.folder / "docker" / "aksnhc", checkout.folder / "docker" / "mine")
    checkout.inside(f"{AGAIN} --yes --skip-preview --non-interactive")
    output = checkout.make("up").stdout
    assert "health-check Complete\n" in output
    assert output.count("VERDICT: PASS") == 2
