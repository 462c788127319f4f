"""Imports the provider SDKs without evaluating their annotations, which would take half of the import time.

As with PEP 563 (`from __future__ import annotations`), annotations stay text until Pulumi's SDK evaluates those in use
(typing.get_type_hints). Separate cache files keep other processes unaffected.
"""

from __future__ import annotations
import __future__

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

_SDKS = ("pulumi_azure_native", "pulumi_kubernetes")


class _Loader(SourceFileLoader):
    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        flags = __future__.annotations.compiler_flag
        code: CodeType = compile(data, path, "exec", flags=flags, dont_inherit=True, optimize=_optimize)
        return code

    def get_data(self, path: str) -> bytes:
        return super().get_data(_own(path))

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        super().set_data(_own(path), data, _mode=_mode)


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name.partition(".")[0] not in _SDKS:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def _own(path: str) -> str:
    return f"{path.removesuffix('.pyc')}.annotations.pyc" if path.endswith(".pyc") else path


def defer_annotations() -> None:
    sys.meta_path.insert(0, _Finder)
