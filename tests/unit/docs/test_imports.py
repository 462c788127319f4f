from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator

import pytest

from simulator.host.paths import ROOT
from simulator.sandbox.executables import SHARED

MAY_IMPORT = {
    "config/data": ("config.data",),
    "config/problems": ("config.problems", "config.data"),
    "config/schema": ("config.schema", "config.problems", "config.data", "k8s"),
    "config/rules": ("config.rules", "config.schema", "config.problems", "config.data", "k8s"),
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
    "demos": ("demos", "config.data", "diagnosis", "k8s"),
    "tools": ("tools", "config", "operators", "workloads", "simulator.tools", "simulator.host"),
}

ARCHITECTURE = ROOT / "docs" / "architecture.md"
LAYERS = {
    layer: tuple(re.findall(r"`(\w+)`", uses))
    for layer, uses in re.findall(
        r"^\| `simulator/(\w+)` \|.*\| ([^|]*) \|$", ARCHITECTURE.read_text("utf-8"), re.MULTILINE
    )
}
"""The simulator's packages with those that each may import: the table of docs/architecture.md."""


def _package(name: str) -> str:
    return f"simulator.{name}".rstrip(".") if name in (*LAYERS, "") else name


MAY_IMPORT |= {
    f"simulator/{layer}": tuple(_package(name) for name in (layer, *below)) for layer, below in LAYERS.items()
}
MAY_IMPORT |= {
    "simulator/charts": ("config.data",),
    "simulator/__main__.py": ("simulator.host.interrupts", "simulator.command.cli"),
}

PACKAGES = {"tests", *(folder.partition("/")[0] for folder in MAY_IMPORT)}


def imports(folder: str) -> Iterator[str]:
    """Ruff rejects relative imports. `from package import name` may also import a module."""
    there = ROOT / folder
    for file in [there] if there.is_file() else sorted(there.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = (f"{node.module}.{alias.name}" for alias in node.names)
                names = [name if _is_module(name) else node.module for name in modules]
            yield from (name for name in names if name.split(".")[0] in PACKAGES)


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


def test_programs_in_strings_of_tests_import_existing_names() -> None:
    """Otherwise a moved module only breaks end-to-end tests."""
    files = (ROOT / "tests").rglob("*.py")
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text("utf-8"))))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    imported = {names for text in texts if "import " in text for names in _imported_names(text)}
    assert {("components.access", "kubeconfig"), ("tests.support.waiting", "eventually")} <= imported
    assert {(module, name) for module, name in imported if not _exists(module, name)} == set()


def _imported_names(text: str) -> Iterator[tuple[str, str]]:
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in PACKAGES:
            yield from ((node.module, alias.name) for alias in node.names)


def _exists(module: str, name: str) -> bool:
    return _is_module(f"{module}.{name}") or hasattr(importlib.import_module(module), name)


SHARED_DATA = frozenset(
    f"config.data.{name}"
    for name in (
        *("blobfuse", "chart_values", "content_tags", "data", "gpu_sharing", "language_models", "near", "scheduling"),
        *("skus", "versions"),
    )
)
SHARED_MODULES = SHARED_DATA | {f"k8s.{name}" for name in ("objects", "quantities", "resources", "scheduling")}
"""All modules that program and simulator share. tests/support/kube_scheduling.yaml compares requests and placement with
Kubernetes' results.
"""


def test_the_simulator_only_shares_data_with_the_program() -> None:
    """Otherwise a wrong rule on both sides would pass."""
    todo = {name for name in imports("simulator") if not name.startswith("simulator.")}
    found: set[str] = set()
    while todo:
        found |= todo
        todo = {name for module in todo for file in _run_by(module) for name in imports(file)} - found
    assert found == SHARED_MODULES


def _run_by(module: str) -> Iterator[str]:
    names = module.split(".")
    yield f"{'/'.join(names)}.py"
    yield from ("/".join([*names[:end], "__init__.py"]) for end in range(1, len(names)))


def test_each_package_of_the_simulator_is_a_layer() -> None:
    """The root only has the files of `python -m simulator`."""
    there = {path.name for path in (ROOT / "simulator").iterdir() if path.name != "__pycache__"}
    assert there == {"__init__.py", "__main__.py", "charts", *LAYERS}


@pytest.mark.parametrize("folder", ["commands", "library"])
def test_simulated_commands_do_not_import_each_other(folder: str) -> None:
    there = {f"simulator.{name.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}" for name in SHARED}
    found = set(imports(f"simulator/sandbox/{folder}")) - there
    assert not {name for name in found if not name.startswith("simulator.sandbox.library")}
