"""Who imports whom, as docs/architecture.md says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.host.paths import ROOT
from simulator.sandbox.executables import SHARED

MAY_IMPORT = {
    "config/facts": ("config.facts",),
    "config/problems": ("config.problems", "config.facts"),
    "config/schema": ("config.schema", "config.problems", "config.facts", "k8s"),
    "config/rules": ("config.rules", "config.schema", "config.problems", "config.facts"),
    "config/reading": ("config",),
    "k8s": ("k8s",),
    "components": ("components", "config", "k8s"),
    "operators": (
        "operators",
        "config",
        "k8s",
        *(f"components.{name}" for name in ("_base", "images", "manifests", "namespace", "operators")),
    ),
    "workloads": ("workloads", "config", "k8s", "components._base", "components.context"),
    "diagnosis": ("diagnosis", "config", "k8s"),
    "demos": ("demos", "config.facts", "diagnosis", "k8s"),
}

FLOORS: dict[str, tuple[str, ...]] = {
    "host": (),
    "tools": ("host", "config"),
    "kube": ("host", "k8s"),
    "world": ("host", "kube", "config", "k8s"),
    "sandbox": ("host", "tools", "world"),
    "kubelet": ("host", "kube", "world", "sandbox", "config", "k8s"),
    "cluster": ("host", "kube", "kubelet", "k8s"),
    "operators": ("host", "kube", "world", "sandbox", "kubelet", "config", "k8s"),
    "azure": ("host", "kube", "world", "config", "k8s"),
    "plugins": ("host", "tools", "kube", "azure", "config", "k8s"),
    "command": (
        "host",
        "tools",
        "kube",
        "world",
        "sandbox",
        "kubelet",
        "cluster",
        "operators",
        "azure",
        "plugins",
        "config",
        "k8s",
    ),
    "bench": ("host", "tools"),
}
"""Of the simulator, from the ground up; `command` may use them all, and `bench` and `charts` stand beside them."""


def _package(name: str) -> str:
    return f"simulator.{name}".rstrip(".") if name in (*FLOORS, "") else name


MAY_IMPORT |= {
    f"simulator/{floor}": tuple(_package(name) for name in (floor, *below)) for floor, below in FLOORS.items()
}
MAY_IMPORT |= {
    "simulator/charts": ("config.facts",),
    "simulator/__main__.py": ("simulator.host.interrupts", "simulator.command.cli"),
}

OURS = {"tests", *(folder.partition("/")[0] for folder in MAY_IMPORT)}
TESTS = ROOT / "tests"
SUPPORT = "tests/support"
ARCHITECTURE = ROOT / "docs" / "architecture.md"


def imports(folder: str) -> Iterator[str]:
    """Modules of this project that the modules of a folder, or a module, import; ruff refuses relative imports.

    `from package import name` may import a module of that name too.
    """
    there = ROOT / folder
    for file in [there] if there.is_file() else sorted(there.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = (f"{node.module}.{alias.name}" for alias in node.names)
                names = [name if _is_module(name) else node.module for name in modules]
            yield from (name for name in names if name.split(".")[0] in OURS)


def _is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_go_one_way(folder: str) -> None:
    allowed = MAY_IMPORT[folder]
    found = set(imports(folder))
    assert bool(found) == bool(allowed)
    assert not {
        name for name in found if not any(name == prefix or name.startswith(f"{prefix}.") for prefix in allowed)
    }


SHARED_FACTS = frozenset(
    f"config.facts.{name}"
    for name in (
        *("blobfuse", "chart_values", "content_tags", "data", "gpu_sharing", "language_models", "near", "scheduling"),
        *("skus", "versions"),
    )
)
"""Data files of constants, with sources, and what reads them."""
SHARED_MODULES = SHARED_FACTS | {"k8s.objects", "k8s.quantities", "k8s.resources"}
"""All that the program and the simulator share. What a pod requests is held to Kubernetes' own answers
(tests/support/kube_scheduling.yaml).
"""


def test_the_simulator_shares_no_decision_with_the_program() -> None:
    """Else a wrong rule on both sides would pass: the simulator judges what the program does."""
    todo = {name for name in imports("simulator") if not name.startswith("simulator.")}
    found: set[str] = set()
    while todo:
        found |= todo
        todo = {name for module in todo for file in _run_by(module) for name in imports(file)} - found
    assert found == SHARED_MODULES


def _run_by(module: str) -> Iterator[str]:
    """Files that an import of a module runs: the packages around it, too."""
    names = module.split(".")
    yield f"{'/'.join(names)}.py"
    yield from ("/".join([*names[:end], "__init__.py"]) for end in range(1, len(names)))


@pytest.mark.parametrize("text", ["from simulator.sandbox import commands", "import simulator.sandbox.commands"])
def test_what_counts_as_an_import(text: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(text)
    assert list(imports(str(tmp_path))) == ["simulator.sandbox.commands"]


def test_the_floors_are_those_of_the_table() -> None:
    """Of docs/architecture.md: the floor, what it is, and what it may use."""
    rows = re.findall(r"^\| `simulator/(\w+)` \|.*\| ([^|]*) \|$", ARCHITECTURE.read_text("utf-8"), re.MULTILINE)
    told = {floor: tuple(re.findall(r"`(\w+)`", uses)) for floor, uses in rows}
    assert told == FLOORS


def test_each_part_of_the_simulator_has_its_floor() -> None:
    """The root holds what `python -m simulator` runs, and nothing else."""
    there = {path.name for path in (ROOT / "simulator").iterdir() if path.name != "__pycache__"}
    assert there == {"__init__.py", "__main__.py", "charts", *FLOORS}


@pytest.mark.parametrize("folder", ["commands", "library"])
def test_simulated_commands_use_what_is_in_the_sandbox_and_not_each_other(folder: str) -> None:
    there = {f"simulator.{name.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}" for name in SHARED}
    found = set(imports(f"simulator/sandbox/{folder}")) - there
    assert not {name for name in found if not name.startswith("simulator.sandbox.library")}


def packages() -> list[str]:
    """Folders of tests that are whole: those of a plan's part, but the simulator's units each by itself."""
    parts = [*(TESTS / "units").iterdir(), *(TESTS / "truth").iterdir(), *(TESTS / "units" / "simulator").iterdir()]
    own = [part for part in parts if part.is_dir() and part.name != "simulator"]
    return sorted(str(part.relative_to(ROOT)) for part in (*own, TESTS / "stories", ROOT / SUPPORT))


def test_units_are_laid_out_as_the_source() -> None:
    """But those of `__main__.py` (`program`) and of what CI runs (`ci`)."""
    units = TESTS / "units"
    laid_out = {str(folder.relative_to(units)) for folder in (*units.iterdir(), *(units / "simulator").iterdir())}
    folders = {name for name in laid_out if (units / name).is_dir()} - {"program", "ci"}
    assert {name for name in folders if not (ROOT / name).is_dir()} == set()
    assert {folder.partition("/")[0] for folder in MAY_IMPORT} <= folders


@pytest.mark.parametrize("folder", packages())
def test_tests_share_nothing_but_what_supports_them(folder: str) -> None:
    allowed = (folder.replace("/", "."), SUPPORT.replace("/", "."))
    helpers = {name for name in imports(folder) if name.split(".")[0] == "tests"}
    assert {name for name in helpers if not name.startswith(allowed)} == set()


def test_nothing_but_tests_imports_tests() -> None:
    assert not [folder for folder in MAY_IMPORT for name in imports(folder) if name.split(".")[0] == "tests"]


def test_classes_of_helpers_have_names_of_their_own() -> None:
    found: dict[str, list[str]] = {}
    for file in TESTS.rglob("*.py"):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(file.name)
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
