"""The operators and workloads that this program can install. Callers pass them in: `config` imports neither."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError, create_model
from pydantic.alias_generators import to_snake
from pydantic_core import ErrorDetails

from config.data.near import called, is_general
from config.problems.fixes import Path
from config.schema.base import EMPTY_IS_UNSET, location_of, stated
from config.schema.json_schema import Schema, paths_in, protecting, schema_at, schema_of
from config.schema.models import Settings, StackFile
from config.schema.operators import OperatorCatalogue, Operators, OperatorSettings, field_of
from config.schema.regions import REGION
from config.schema.workload import WorkloadCatalogue

_Fields = tuple[tuple[str, type[OperatorSettings], str], ...]
"""The names, types and descriptions of generated fields, which have no docstrings."""
_Keys = tuple[tuple[str, str], ...]
_Option = Annotated[str | None, EMPTY_IS_UNSET]


@dataclass(frozen=True)
class Inventory:
    operators: OperatorCatalogue
    workloads: WorkloadCatalogue

    @property
    def stack_file(self) -> type[StackFile]:
        return _with_keys(StackFile, *self._keys)

    def settings_of(self, stack_file: StackFile, **found: Any) -> Settings:
        model = _with_keys(Settings, *self._keys)
        settings: Settings = model.model_validate(stated(stack_file) | found, by_alias=False, by_name=True)
        return settings

    @property
    def _keys(self) -> tuple[_Fields, _Keys, tuple[str, ...]]:
        operators = tuple((field_of(name), each.settings, each.summary) for name, each in self.operators.items())
        at_the_top = tuple((key, self._of_options(key)) for key in sorted(self.workload_keys))
        return operators, at_the_top, tuple(sorted(self.workloads))

    def _of_options(self, key: str) -> str:
        options = [
            f"`workloadOptions.{name}.{each.keys[key]}`" for name, each in self.workloads.items() if key in each.keys
        ]
        return f"The same as {' and '.join(options)}."

    @property
    def workload_keys(self) -> set[str]:
        return {key for each in self.workloads.values() for key in each.keys}

    def path_of(self, key: str) -> Path | None:
        if key in self.workloads:
            return "workloadOptions", key
        options = (paths_in(each.options, ("workloadOptions", name)) for name, each in self.workloads.items())
        paths = list(chain(paths_in(self.stack_file), *options))
        found = [path for path in paths if path[-1] == key] or [path for path in paths if called(key, [str(path[-1])])]
        return found[0] if len(found) == 1 and not is_general(key) and found[0][-1] != "*" else None

    def is_option(self, path: Path) -> bool:
        return len(path) > 2 and path[0] == "workloadOptions" and path[1] in self.workloads

    def schema(self, path: Path) -> Schema:
        """Returns the JSON schema at a path; empty if no model describes it."""
        model, below = self._model_of(path)
        return schema_at(schema_of(model), below)

    def protecting(self) -> Mapping[str, Path]:
        return protecting(self.stack_file)

    def faults(self, path: Path, value: Any) -> dict[Path, ErrorDetails]:
        model, below = self._model_of(("location",) if path == (REGION,) else path)
        if ":" in str(path[0]) and path != (REGION,):
            return {}  # a provider's key, which the provider validates
        if isinstance(value, str) and len(path) == 1 and self.schema(path).get("type") in ("array", "object"):
            return {}  # text that the loader parses later
        for part in reversed(below):
            value = {part: value}
        try:
            model.model_validate(value, by_alias=True, by_name=False)
        except ValidationError as error:
            found = {location_of(each): each for each in error.errors()}
            return {(*path, *at[len(below) :]): each for at, each in found.items() if at[: len(below)] == below}
        return {}

    def _model_of(self, path: Path) -> tuple[type[BaseModel], Path]:
        return (self.workloads[str(path[1])].options, path[2:]) if self.is_option(path) else (self.stack_file, path)

    @property
    def namespaces(self) -> list[str]:
        return sorted({each.namespace for each in self.operators.values()})


@cache
def _operators(of_operators: _Fields) -> type[Operators]:
    fields: dict[str, Any] = {
        name: (settings, Field(settings(), description=summary)) for name, settings, summary in of_operators
    }
    return create_model("Operators", __base__=Operators, **fields)


_Model = TypeVar("_Model", bound=StackFile)


@cache
def _with_keys(
    base: type[_Model], of_operators: _Fields, of_workloads: _Keys, workloads: tuple[str, ...]
) -> type[_Model]:
    operators = _operators(of_operators)
    at_the_top: dict[str, Any] = {to_snake(key): (_Option, Field(None, description=text)) for key, text in of_workloads}
    names = ", ".join(f"`{name}`" for name in workloads)
    return create_model(
        base.__name__,
        __base__=base,
        operators=(operators, operators()),
        workloads=(tuple[str, ...], Field((), description=f"There are {names}.")),
        **at_the_top,
    )
