"""What operators without a chart are installed from: upstream's manifests, looked up before anything is declared.

From the folder that `charts.source` names, where they are taken as they are, like charts. Else they are made here, of
the pinned Go module.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pulumi
import yaml

from components import arm
from components.kustomize import made_by_kubectl, sum_of
from components.operators import Operator
from config.facts.data import parsed_all
from config.facts.versions import INSTALL, Kustomization, versions
from config.problems.fixes import set_command
from config.schema.models import Settings

Manifest = dict[str, Any]
_TIMEOUT_S = 30.0
_FOLDER = ".simulator/upstream-charts"
"""Where `make upstream-charts` puts them."""


def check_manifests(settings: Settings, operators: Mapping[str, Operator[Any]]) -> None:
    """Raises pulumi.RunError where manifests of an operator that the stack wants cannot be had, or are not sound."""
    for name in versions().manifests.keys() & operators.keys():
        if operators[name].is_wanted(settings):
            manifests(name, settings.charts.source)


@functools.cache
def manifests(name: str, source: str | None) -> tuple[Manifest, ...]:
    """All objects that an operator's release has, not to be changed. Raises pulumi.RunError."""
    pin = versions().manifests[name]
    place = f"{source.rstrip('/')}/{name}/{INSTALL}" if source else pin.address
    text = _read(place) if source else _fetched(pin)
    try:
        found = tuple(each for each in parsed_all(text) if each is not None)
        sound = bool(found) and all(each["apiVersion"] and each["kind"] and each["metadata"]["name"] for each in found)
    except (yaml.YAMLError, KeyError, TypeError):
        sound = False
    if not sound:
        raise pulumi.RunError(f"{place} is no file of Kubernetes objects. Nothing was changed.")
    return found


def _read(file: str) -> str:
    """Relative to the program's folder, where it runs."""
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise pulumi.RunError(f"{file} cannot be read: {error}. Nothing was changed.") from None


def _fetched(pin: Kustomization) -> str:
    """The pinned release, checked."""
    try:
        status, _, content = arm.fetch(pin.address, "", _TIMEOUT_S)
        why = "" if status == HTTPStatus.OK else f"it answers {status}"
    except (OSError, ValueError, HTTPException) as error:
        why = str(error)
    if why:
        raise pulumi.RunError(unreachable(pin, why))
    if (found := sum_of(content)) != pin.sum:
        raise pulumi.RunError(another(pin, found))
    return made_by_kubectl(pin, content)


def unreachable(pin: Kustomization, why: str) -> str:
    """What is wrong, and what mends it."""
    folder = set_command(("charts", "source"), _FOLDER).text(pulumi.get_stack())
    return "\n".join(
        [
            f"{pin.name} {pin.version} has no chart, and its released manifests cannot be fetched.",
            f"{pin.address}: {why}",
            "Nothing was changed. Do this where the internet is open, and let all charts come from there:",
            "    make upstream-charts",
            f"    {folder}",
        ]
    )


def another(pin: Kustomization, found: str) -> str:
    """The same of a module that somebody has changed since it was pinned."""
    return "\n".join(
        [
            f"the manifests of {pin.name} {pin.version} are not those that were pinned: {pin.address}",
            f"has the sum {found}; in config/facts/versions.yaml it is {pin.sum}.",
            "Nothing was changed. A release does not change by itself: ask upstream before you pin it anew, by",
            f"    go mod download -json {pin.module}@{pin.version}",
        ]
    )
