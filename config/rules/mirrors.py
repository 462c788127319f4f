"""Rules for mirrors of charts and images."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from config.data.versions import INSTALL, versions
from config.problems.errors import Problem
from config.problems.fixes import Path, by_hand, set_command
from config.schema.operators import Installation
from config.schema.registry import REGISTRY

OCI = "oci://"
IsFile = Callable[[str], bool]

_SOURCE: Path = ("charts", "source")
_SOURCES = (
    "a folder, relative to the program's folder, with a subfolder for each unpacked chart, as in "
    "charts/gpu-operator/Chart.yaml; or oci://<registry>/<folder>"
)


def mirror_problems(installation: Installation, is_file: IsFile) -> Iterator[Problem]:
    source, registry = installation.stack.charts.source, installation.stack.images.registry
    if source is not None and (what := _source_fault(installation, source, is_file)):
        yield Problem(_SOURCE, f"is {source!r}, {what}", _SOURCES, by_hand(_SOURCE))
    elif source is not None and "://" in source and (names := _without_charts(installation)):
        has = "has" if len(names) == 1 else "have"
        what = f"is {source!r}, a registry of charts, but {' and '.join(names)} {has} manifests and no chart"
        allowed = "a folder, for example from `make upstream-charts`"
        yield Problem(_SOURCE, what, allowed, by_hand(_SOURCE))
    if registry is not None and (what := _registry_fault(registry)):
        path = ("images", "registry")
        host = registry.rpartition("://")[2].rstrip("/").lower()
        fix = by_hand(path) if _registry_fault(host) else set_command(path, host)
        allowed = (
            "a registry's host without https://, and an optional path: <name>.azurecr.io or mirror.example.com/nvidia"
        )
        yield Problem(path, f"is {registry!r}, {what}", allowed, fix)


def _registry_fault(registry: str) -> str:
    """Returns the error in a registry's name, or an empty string. A host without dot or port would mean Docker Hub
    (distribution/reference, normalize.go: splitDockerDomain).
    """
    if not re.fullmatch(REGISTRY, registry):
        return "not a registry"
    host = registry.partition("/")[0]
    return "" if set(host) & {".", ":"} or host == "localhost" else "which means a folder of Docker Hub"


def _source_fault(installation: Installation, source: str, is_file: IsFile) -> str:
    if "://" in source:
        registry = source.removeprefix(OCI).rstrip("/")
        return "" if re.fullmatch(REGISTRY, registry) else "neither an OCI registry nor a folder"
    if is_file(source):
        return "a file, not a folder"
    wanted = [each for each in installation.operators.values() if each.is_wanted(installation.stack)]
    needed = [f"{each.name}/Chart.yaml" for each in wanted if each.has_chart]
    needed += [f"{name}/{INSTALL}" for name in _without_charts(installation)]
    missing = [file for file in needed if not is_file(f"{source.rstrip('/')}/{file}")]
    if missing and missing == needed:
        return "not a folder with charts"
    return f"a folder without {', '.join(missing)}" if missing else ""


def _without_charts(installation: Installation) -> list[str]:
    wanted = (each for each in installation.operators.values() if each.is_wanted(installation.stack))
    return [each.name for each in wanted if each.name in versions().manifests]
