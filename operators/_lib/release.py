"""A Helm release of a pinned chart, from its own repository or from `charts.source`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component
from components.images import chart_values
from components.operators import InstallContext
from config.data.versions import Chart, versions

Values = dict[str, Any]


@dataclass(frozen=True)
class ChartLocation:
    chart: str
    repository: str | None
    version: str | None
    """The version. None for a folder: its Chart.yaml has the version, and a pin would show as a change."""


def locate(chart: Chart, source: str | None) -> ChartLocation:
    if source is None:
        return ChartLocation(chart.oci or chart.name, chart.repository, chart.version)
    if source.startswith("oci://"):
        return ChartLocation(f"{source.rstrip('/')}/{chart.name}", None, chart.version)
    # The path is relative to the program's folder: an absolute path would show as a change on every other machine.
    return ChartLocation(f"{source.rstrip('/')}/{chart.name}", None, None)


def merge(values: Mapping[str, Any], over: Mapping[str, Any]) -> Values:
    """Returns `values` overridden by `over`. Like Helm, merges maps and replaces everything else."""
    merged = dict(values)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged


def release(
    name: str,
    context: InstallContext,
    *,
    parent: Component,
    values: Values,
    user_values: Mapping[str, Any],
    called: str | None = None,
    namespace: str | None = None,
    depends_on: Iterable[pulumi.Resource] = (),
    hooks: pulumi.ResourceHookBinding | None = None,
    awaited: bool = True,
) -> kubernetes.helm.v3.Release:
    """Creates a release of the pinned chart `name`, by default in the operator's namespace.

    The release's name is `called`, by default `name`. The user's values take precedence. If `awaited`, Pulumi waits for
    the chart's objects, but not for objects that an operator creates.
    """
    chart = versions().charts[name]
    location = locate(chart, context.settings.charts.source)
    repository = kubernetes.helm.v3.RepositoryOptsArgs(repo=location.repository) if location.repository else None
    return kubernetes.helm.v3.Release(
        name,
        name=called or name,
        chart=location.chart,
        version=location.version,
        repository_opts=repository,
        namespace=namespace or context.namespace.metadata["name"],
        values=merge(merge(chart_values(name, context.settings.images.registry), values), user_values),
        timeout=chart.timeout_s,
        skip_await=None if awaited else True,
        # Releases in other namespaces depend on it too, because only namespaces are retried until the role applies.
        opts=parent.child(depends_on=[context.namespace, *depends_on], hooks=hooks),
    )
