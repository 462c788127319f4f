"""Rules for the places that charts and images come from in place of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from config.errors import Path, Problem, remove_command, set_command
from config.models import StackFile
from config.references import REGISTRY
from config.rules import OPERATOR_CHARTS, installs

OCI = "oci://"
IsFile = Callable[[str], bool]
"""Whether there is a file at a path; a relative one is relative to the program's folder."""

_SOURCE: Path = ("charts", "source")
_SOURCES = (
    "a folder with one unpacked chart per folder, as in charts/gpu-operator/Chart.yaml, relative to the program's "
    "folder; or oci://<registry>/<folder>"
)


def mirror_problems(stack: StackFile, is_file: IsFile) -> Iterator[Problem]:
    """What is wrong with `charts.source` and `images.registry`."""
    if stack.charts.source is not None and (what := _source_fault(stack, stack.charts.source, is_file)):
        yield Problem(_SOURCE, f"is {stack.charts.source!r}, {what}", _SOURCES, remove_command(_SOURCE))
    registry = stack.images.registry
    if registry is not None and not re.fullmatch(REGISTRY, registry):
        path = ("images", "registry")
        host = registry.rpartition("://")[2].rstrip("/").lower()
        better = host if re.fullmatch(REGISTRY, host) else "mirror.example.com/nvidia"
        allowed = "a registry's host, with a path or not, and no scheme: mirror.example.com/nvidia"
        yield Problem(path, f"is {registry!r}, not a registry", allowed, set_command(path, better))


def _source_fault(stack: StackFile, source: str, is_file: IsFile) -> str:
    if "://" in source:
        registry = source.removeprefix(OCI).rstrip("/")
        return "" if re.fullmatch(REGISTRY, registry) else "neither an OCI registry nor a folder"
    if is_file(source):
        return "a file where a folder belongs"
    needed = [chart for key, chart in OPERATOR_CHARTS.items() if installs(stack, key)]
    missing = [chart for chart in needed if not is_file(f"{source.rstrip('/')}/{chart}/Chart.yaml")]
    if missing and missing == needed:
        return "which is no folder or holds none of the charts"
    return f"a folder without {', '.join(f'{chart}/Chart.yaml' for chart in missing)}" if missing else ""
