"""What this program can install and run. `config` imports neither operators nor workloads: it is handed them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Annotated, Any

from pydantic import Field, create_model
from pydantic.alias_generators import to_snake

from config.facts.near import called, is_general
from config.problems.fixes import Path
from config.schema.base import EMPTY_IS_UNSET
from config.schema.models import StackFile
from config.schema.operators import OperatorCatalogue, Operators, OperatorSettings, field_of
from config.schema.translate import paths_in
from config.schema.workload import WorkloadCatalogue

_Fields = tuple[tuple[str, type[OperatorSettings], str], ...]
"""Names, types and descriptions, which fields that are in no source have in place of docstrings."""
_Keys = tuple[tuple[str, str], ...]
_Option = Annotated[str | None, EMPTY_IS_UNSET]
"""What is allowed there, the workloads' own models say."""


@dataclass(frozen=True)
class Inventory:
    """All operators and all workloads."""

    operators: OperatorCatalogue
    workloads: WorkloadCatalogue

    @property
    def stack_file(self) -> type[StackFile]:
        """The model of a stack file: each operator has its key in it, and so have options of workloads at the top."""
        operators = tuple((field_of(name), each.settings, each.summary) for name, each in self.operators.items())
        at_the_top = tuple((key, self._of_options(key)) for key in sorted(self.workload_keys))
        return _stack_file(operators, at_the_top, tuple(sorted(self.workloads)))

    def _of_options(self, key: str) -> str:
        """The description of a key at the top that sets options of workloads."""
        options = [
            f"`workloadOptions.{name}.{each.keys[key]}`" for name, each in self.workloads.items() if key in each.keys
        ]
        return f"The same as {' and '.join(options)}."

    @property
    def workload_keys(self) -> set[str]:
        """Keys at the top of a stack file that set options of workloads, of several perhaps."""
        return {key for each in self.workloads.values() for key in each.keys}

    def path_of(self, key: str) -> Path | None:
        """Returns where a key stands: a workload's options, or the one place that has its name."""
        if key in self.workloads:
            return "workloadOptions", key
        options = (paths_in(each.options, ("workloadOptions", name)) for name, each in self.workloads.items())
        paths = list(chain(paths_in(self.stack_file), *options))
        found = [path for path in paths if path[-1] == key] or [path for path in paths if called(key, [str(path[-1])])]
        return found[0] if len(found) == 1 and not is_general(key) and found[0][-1] != "*" else None

    @property
    def namespaces(self) -> list[str]:
        """Those of the operators."""
        return sorted({each.namespace for each in self.operators.values()})


@cache
def _stack_file(of_operators: _Fields, of_workloads: _Keys, workloads: tuple[str, ...]) -> type[StackFile]:
    fields: dict[str, Any] = {
        name: (settings, Field(settings(), description=summary)) for name, settings, summary in of_operators
    }
    operators = create_model("Operators", __base__=Operators, **fields)
    at_the_top: dict[str, Any] = {to_snake(key): (_Option, Field(None, description=text)) for key, text in of_workloads}
    names = ", ".join(f"`{name}`" for name in workloads)
    return create_model(
        "StackFile",
        __base__=StackFile,
        operators=(operators, operators()),
        workloads=(tuple[str, ...], Field((), description=f"There are {names}.")),
        **at_the_top,
    )
