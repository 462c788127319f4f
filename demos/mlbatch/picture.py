"""Draws the GPUs that each team used during the demonstration, from Prometheus."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from demos.chart import Chart, svg
from demos.mlbatch.cluster import Cluster, Denied, Failed

QUERY = 'count by (exported_namespace) (DCGM_FI_DEV_XID_ERRORS{exported_pod!=""})'
"""The query of the dashboard of GPU use. DCGM's exporter adds the pod of each GPU as a label."""
_PROMETHEUS = "/api/v1/namespaces/monitoring/services/prometheus-kube-prometheus-prometheus:http-web/proxy/api/v1"
_STEP_S = 5
_ON = "pulumi config set -s mlbatch --path operators.kubePrometheusStack.enabled true && pulumi up -s mlbatch"


def gpus_by_team(cluster: Cluster, teams: Sequence[str], start: int, end: int) -> Mapping[str, Sequence[int]]:
    """Returns the number of GPUs by team at each step from `start` to `end`, in seconds since 1970.

    Raises Failed if Prometheus does not answer, or has no data about the teams.
    """
    query = urlencode({"query": QUERY, "start": start, "end": end, "step": _STEP_S})
    try:
        answer = json.loads(cluster.kubectl("get", "--raw", f"{_PROMETHEUS}/query_range?{query}"))
    except Denied as error:
        raise Failed(f"no picture: Prometheus does not answer: {error}\n  fix: {_ON}") from None
    found = {each["metric"]["exported_namespace"]: dict(each["values"]) for each in answer["data"]["result"]}
    if not any(team in found for team in teams):
        raise Failed(f"no picture: Prometheus has no data about the GPUs of {', '.join(teams)}")
    return {team: [int(found.get(team, {}).get(at, 0)) for at in range(start, end + 1, _STEP_S)] for team in teams}


def drawn(by_team: Mapping[str, Sequence[int]]) -> str:
    return svg([Chart("GPUs of each team", by_team, _STEP_S, stacked=True)])
