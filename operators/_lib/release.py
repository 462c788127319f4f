"""One Helm release of a pinned chart, from its own place or from where `charts.source` redirects it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component
from components.images import chart_values
from components.operators import Site
from config.data.versions import Chart, versions

Values = dict[str, Any]


@dataclass(frozen=True)
class ChartLocation:
    """Where Helm finds a chart."""

    chart: str
    repository: str | None
    version: str | None
    """None for a folder: its Chart.yaml says, and a pin would show as a difference for ever."""


def locate(chart: Chart, source: str | None) -> ChartLocation:
    """The chart in its own place, or below `source`: an OCI registry, or a folder of unpacked charts."""
    if source is None:
        return ChartLocation(chart.oci or chart.name, chart.repository, chart.version)
    if source.startswith("oci://"):
        return ChartLocation(f"{source.rstrip('/')}/{chart.name}", None, chart.version)
    # Relative to the program's folder and kept so: an absolute path would be a difference on every other machine.
    return ChartLocation(f"{source.rstrip('/')}/{chart.name}", None, None)


def merge(values: Mapping[str, Any], over: Mapping[str, Any]) -> Values:
    """`values` with `over` on top: maps are merged, everything else is replaced, as Helm does."""
    merged = dict(values)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged


def release(
    name: str,
    site: Site,
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
    """The release `name` of the pinned chart `name`, or one `called` otherwise, in the site's namespace or another.

    The user's values come last.
    It waits for what the chart itself makes, unless it is not `awaited`; never for what an operator makes later.
    """
    chart = versions().charts[name]
    location = locate(chart, site.settings.charts.source)
    repository = kubernetes.helm.v3.RepositoryOptsArgs(repo=location.repository) if location.repository else None
    return kubernetes.helm.v3.Release(
        name,
        name=called or name,
        chart=location.chart,
        version=location.version,
        repository_opts=repository,
        namespace=namespace or site.namespace.metadata["name"],
        values=merge(merge(chart_values(name, site.settings.images.registry), values), user_values),
        timeout=chart.timeout_s,
        skip_await=None if awaited else True,
        # Also of a release that goes elsewhere: no namespace of ours, no right in the cluster yet (retries).
        opts=parent.child(depends_on=[site.namespace, *depends_on], hooks=hooks),
    )
