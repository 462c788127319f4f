"""What runs in the cluster beside the jobs: one package per operator, each with an `OPERATOR`.

Adding one edits no other module: it takes its package and, in `config/data`, its pin and the keys of its chart.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from components.operators import Operator


def find() -> dict[str, Operator[Any]]:
    """All operators by name. Modules whose name begins with an underscore are helpers."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    found: list[Operator[Any]] = [importlib.import_module(f"{__name__}.{name}").OPERATOR for name in names]
    return {operator.name: operator for operator in found}
