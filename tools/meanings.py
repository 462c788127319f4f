"""What each field of a model means: the docstring below it, read from the source when somebody asks.

Pydantic reads them itself if told to (`use_attribute_docstrings`), but as each model is made, by a look at every module
that is there: that was a quarter of what the program imports, for pages that only this folder writes.
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
    """By field. What the field itself is given as its description follows the docstring, which it may do without."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        found |= _docstrings(each)
    described = {name: field.description for name, field in model.model_fields.items() if field.description}
    found |= {name: f"{found[name]} {text}" if name in found else text for name, text in described.items()}
    return {name: found[name] for name in model.model_fields if name in found}


@functools.cache
def _docstrings(of: type) -> Mapping[str, str]:
    """Those below the fields of a class; none of a class without a source of its own (`create_model`)."""
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
