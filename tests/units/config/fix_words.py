"""The fix that a stack is offered for wrong settings, and the forms that fixes have."""

from __future__ import annotations

from typing import Any

import pytest

import workloads
from config.problems.errors import SettingsError
from tests.support.settings import H100, load

KNOWN = workloads.find()
GROUP = "00000000-0000-4000-8000-000000000001"
"""An id of a group of Entra, or of another thing of Azure."""
SPOT = {"vmSku": H100, "spot": True}


def changed(path: str) -> str:
    return f"change {path} in the stack file to what is allowed"


def fix_of(keys: dict[str, Any]) -> str:
    """Returns the fix of the first problem of a stack with these keys."""
    pool = {} if "pools" in keys else {"vmSku": H100, "nodeCount": 2}
    with pytest.raises(SettingsError) as caught:
        load(pool | keys, known=KNOWN)
    return caught.value.problems[0].fix


def by_hand(place: str, key: str) -> str:
    return f"set {place} to what you need in the stack file, and remove {key}"


def replaced_by_nothing(key: str) -> str:
    return f"remove {key} if you do not need it: no setting of this program has a similar name"


def chosen(place: str, key: str) -> str:
    return f"{place} has another value: keep the one that you need there in the stack file, and remove {key}"


def moved(there: str, value: object, key: str) -> str:
    path = "--path " if "." in key else ""
    return f"pulumi config set --path {there} {value} && pulumi config rm {path}{key}"
