"""The software in the cluster besides jobs: one package per operator, each with an `OPERATOR`.

A new operator only needs a package and, in `config/data`, its pin and its chart's keys.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from components.operators import Operator


def find() -> dict[str, Operator[Any]]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    found: list[Operator[Any]] = [importlib.import_module(f"{__name__}.{name}").OPERATOR for name in names]
    return {operator.name: operator for operator in found}
