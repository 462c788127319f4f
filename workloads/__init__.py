"""The workloads: a module or package with a `WORKLOAD` for each. A new workload needs no change in other modules."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from workloads._lib.base import Workload, deploy

__all__ = ["deploy", "find"]


def find() -> dict[str, Workload[Any]]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    found: list[Workload[Any]] = [importlib.import_module(f"{__name__}.{name}").WORKLOAD for name in names]
    return {workload.name: workload for workload in found}
