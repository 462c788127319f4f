"""Who imports whom, as docs/architecture.md says."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from simulator.paths import ROOT

MAY_IMPORT = {
    "config/facts": ("config.facts",),
    "config/problems": ("config.problems", "config.facts"),
    "config/schema": ("config.schema", "config.problems", "config.facts"),
    "config/rules": ("config.rules", "config.schema", "config.problems", "config.facts"),
    "config/reading": ("config",),
    "components": ("components", "config"),
    "operators": ("operators", "config", *(f"components.{name}" for name in ("_base", "images", "operators"))),
    "workloads": ("workloads", "config", "components._base", "components.context"),
    "diagnosis": ("diagnosis", "config"),
    "simulator": ("simulator", "config", "diagnosis"),
}

OURS = {folder.partition("/")[0] for folder in MAY_IMPORT}


def imports(folder: str) -> Iterator[str]:
    """Modules of this project that the folder's modules import."""
    for file in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            yield from (name for name in names if name.split(".")[0] in OURS)


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_go_one_way(folder: str) -> None:
    allowed = MAY_IMPORT[folder]
    found = set(imports(folder))
    assert found
    assert not {
        name for name in found if not any(name == prefix or name.startswith(f"{prefix}.") for prefix in allowed)
    }
