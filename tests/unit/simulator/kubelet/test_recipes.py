from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from simulator.kubelet.nodes import NodeKeeper
from simulator.kubelet.pods import PodCatalogue
from simulator.kubelet.runner import Script
from simulator.kubelet.scripts import Scripts
from simulator.sandbox import images, sandbox
from tests.support.case_files import case_table
from tests.unit.simulator.kubelet.pods import make


@pytest.fixture(autouse=True)
def recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = shutil.copytree(images.RECIPES, tmp_path / "recipes")
    monkeypatch.setattr(images, "RECIPES", copy)
    monkeypatch.setattr(sandbox, "available", lambda: None)
    return copy


@pytest.fixture
def catalogue(tmp_path: Path) -> PodCatalogue:
    return PodCatalogue([], Scripts(cast(NodeKeeper, None), tmp_path, 0).find)


def pod(image: str) -> dict[str, Any]:
    return make(image=f"dev.azurecr.io/team/{image}:1")


def test_reads_a_recipe_that_is_added_later(catalogue: PodCatalogue, recipes: Path) -> None:
    assert not catalogue.runs_here(pod("mine"))
    (recipes / "mine.yaml").write_text("executables: [shell]\n")
    assert catalogue.runs_here(pod("mine"))
    assert images.image_named("mine").python is False


def test_an_image_with_tools_needs_their_executables(catalogue: PodCatalogue, recipes: Path) -> None:
    (recipes / "mine.yaml").write_text("executables: []\ntools: {/manager: etcd}\n")
    program = catalogue.runnable(pod("mine")["spec"]["containers"][0])
    assert isinstance(program, Script)
    assert program.tools == ("etcd",)
    assert images.image_named("mine").tools == {"/manager": "etcd"}


def test_reads_a_changed_recipe_for_the_next_container(recipes: Path) -> None:
    recipe = recipes / "nccl-test.yaml"
    assert "/opt/mine" not in images.image_named("nccl-test").commands
    recipe.write_text(recipe.read_text() + "  /opt/mine: nvidia_smi\n")
    os.utime(recipe, ns=(0, recipe.stat().st_mtime_ns + 1))  # independent of the file system's clock
    assert images.image_named("nccl-test").commands["/opt/mine"] == "nvidia_smi"


@case_table(__file__, "wrong")
def test_rejects_an_invalid_recipe_with_its_name_and_error(recipes: Path, text: str, message: str) -> None:
    (recipes / "mine.yaml").write_text(text)
    with pytest.raises(images.RecipeError) as error:
        images.image_named("mine")
    assert str(error.value).startswith(f"recipes/mine.yaml: {message}")
    assert "\n" not in str(error.value)


def test_rejects_an_image_without_a_recipe() -> None:
    with pytest.raises(images.RecipeError, match="image 'mine' has no recipe; images with a recipe: aksnhc, "):
        images.image_named("mine")
