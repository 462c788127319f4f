"""The meaning of each field of a model: the docstring below it, read from the source on demand.

Pydantic can read it (`use_attribute_docstrings`), but searches every module for each new model. That took a quarter of
the program's import time, although only tools need the meanings.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Mapping

from pydantic import BaseModel


@functools.cache
def meanings(model: type[BaseModel]) -> Mapping[str, str]:
    """Returns the meanings by field: the docstring of a field, then its `description`. A field may have only one."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        found |= _docstrings(each)
    described = {name: field.description for name, field in model.model_fields.items() if field.description}
    found |= {name: f"{found[name]} {text}" if name in found else text for name, text in described.items()}
    return {name: found[name] for name in model.model_fields if name in found}


@functools.cache
def _docstrings(of: type) -> Mapping[str, str]:
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(of))).body
    except (OSError, TypeError):
        return {}
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in zip(body, body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }
