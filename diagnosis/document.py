"""The JSON document of `python -m diagnosis --output json`; docs/diagnosis.md describes its fields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from diagnosis.cluster import Cluster
from diagnosis.finding import Finding
from diagnosis.lost import never_ending
from diagnosis.owners import makers_of, pods_of
from diagnosis.report import Report
from k8s.objects import Object


def of_platform(cluster: Cluster, report: Report) -> Object:
    """Returns the document on the platform."""
    findings = {"findings": _findings(report.findings), "neverEnding": _findings(never_ending(cluster))}
    return {"platform": {"phase": report.phase, **findings}}


def of_workloads(cluster: Cluster, namespace: str, reports: Iterable[Report]) -> Object:
    """Returns the document on workloads of a namespace."""
    return {"partial": cluster.partial, "workloads": [_workload(cluster, namespace, each) for each in reports]}


def _workload(cluster: Cluster, namespace: str, report: Report) -> Object:
    return {
        **asdict(report),
        "namespace": namespace,
        "outcome": report.outcome,
        "findings": _findings(report.findings),
        "objects": makers_of(cluster, namespace, report.uid),
        "pods": [pod["metadata"]["name"] for pod in pods_of(cluster, namespace, report.uid)],
        "text": "\n".join(report.head()),
    }


def _findings(found: Iterable[Finding]) -> list[Object]:
    return [{**asdict(each), "text": "\n".join(each.lines())} for each in found]
