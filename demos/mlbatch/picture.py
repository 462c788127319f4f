"""GPUs that each team held while the demonstration ran, as Prometheus has them, drawn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

from demos.mlbatch.cluster import Cluster, Denied, Failed

QUERY = 'count by (exported_namespace) (DCGM_FI_DEV_XID_ERRORS{exported_pod!=""})'
"""As the dashboard of GPU use has it: DCGM's exporter names the pod that holds each GPU."""
_PROMETHEUS = "/api/v1/namespaces/monitoring/services/prometheus-kube-prometheus-prometheus:http-web/proxy/api/v1"
_STEP_S, _LABELS = 5, 8
_WIDTH, _HEIGHT = 880, 300
_COLOURS = ("#1f77b4", "#d62728")
"""Of a team each."""
_ON = "pulumi config set -s mlbatch --path operators.kubePrometheusStack.enabled true && pulumi up -s mlbatch"


def held(cluster: Cluster, teams: Sequence[str], start: int, end: int) -> Mapping[str, Sequence[int]]:
    """By team, how many at each step from `start` to `end`, in seconds since 1970.

    Raises Failed where Prometheus does not answer, or has seen nothing of them.
    """
    asked = urlencode({"query": QUERY, "start": start, "end": end, "step": _STEP_S})
    try:
        answer = json.loads(cluster.kubectl("get", "--raw", f"{_PROMETHEUS}/query_range?{asked}"))
    except Denied as error:
        raise Failed(f"no picture: Prometheus does not answer: {error}\n  fix: {_ON}") from None
    found = {each["metric"]["exported_namespace"]: dict(each["values"]) for each in answer["data"]["result"]}
    if not any(team in found for team in teams):
        raise Failed(f"no picture: Prometheus has seen no GPU of {', '.join(teams)} held")
    return {team: [int(found.get(team, {}).get(at, 0)) for at in range(start, end + 1, _STEP_S)] for team in teams}


def svg(by_team: Mapping[str, Sequence[int]], gpus: int) -> str:
    """The picture, of a cluster with so many GPUs."""
    return ElementTree.tostring(drawing(by_team, gpus), encoding="unicode") + "\n"


def drawing(by_team: Mapping[str, Sequence[int]], gpus: int) -> ElementTree.Element:
    """What each team held on top of the one before, step by step."""
    steps = max(len(values) for values in by_team.values())
    wide, high = _WIDTH / max(1, steps), _HEIGHT / gpus
    root = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": "sans-serif"})
    root.set("viewBox", f"-60 -40 {_WIDTH + 80} {_HEIGHT + 80}")
    _text(root, 0, -20, "GPUs held by each team", "start", "16")
    below = [0] * steps
    for (team, values), colour in zip(by_team.items(), _COLOURS, strict=False):
        bars = ElementTree.SubElement(root, "g", {"fill": colour})
        ElementTree.SubElement(bars, "title").text = team
        for step, count in enumerate(values):
            top = _HEIGHT - (below[step] + count) * high
            box = {
                "x": f"{step * wide:.1f}",
                "y": f"{top:.1f}",
                "width": f"{wide:.1f}",
                "height": f"{count * high:.1f}",
            }
            ElementTree.SubElement(bars, "rect", box)
            below[step] += count
    for number, (team, colour) in enumerate(zip(by_team, _COLOURS, strict=False)):
        _text(root, _WIDTH - 90 * number, -20, team, "end", "14").set("fill", colour)
    for count in range(0, gpus + 1, 8):
        _text(root, -8, _HEIGHT - count * high + 4, str(count), "end")
    for step in range(0, steps, max(1, steps // _LABELS)):
        minutes, seconds = divmod(step * _STEP_S, 60)
        _text(root, step * wide, _HEIGHT + 20, f"{minutes}:{seconds:02}", "start")
    ElementTree.SubElement(root, "path", {"d": f"M0 0V{_HEIGHT}H{_WIDTH}", "fill": "none", "stroke": "#444"})
    return root


def _text(root: ElementTree.Element, x: float, y: float, words: str, anchor: str, size: str = "12") -> Any:
    where = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor, "font-size": size}
    text = ElementTree.SubElement(root, "text", where)
    text.text = words
    return text
