"""Reports the state of workloads, what they wait for, and what to do.

Without a workload, it reports cordoned nodes, nodes with problems, and policies of NVIDIA's operators that are not
ready. If the user may read only one namespace, it reports what that namespace shows. docs/diagnosis.md describes the
JSON document.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from config.rules.azure_errors import explain_log
from config.schema.names import WORKLOAD_NAMESPACE
from diagnosis import kubectl
from diagnosis.cluster import POD, Cluster
from diagnosis.ended import selector
from diagnosis.finding import Finding
from diagnosis.lost import never_ending
from diagnosis.owners import makers_of, pods_of
from diagnosis.report import BAD, DONE, GONE, Report, names, platform, report, with_kinds
from k8s.objects import Object

_NOT_SEEN = "not checked: nodes and other namespaces. You may not read them; an administrator of the platform may"

_WATCH_S = 1.0


def platform_document(cluster: Cluster, report: Report) -> Object:
    findings = {"findings": _findings(report.findings), "neverEnding": _findings(never_ending(cluster))}
    return {"platform": {"phase": report.phase, **findings}}


def workloads_document(cluster: Cluster, namespace: str, reports: Iterable[Report]) -> Object:
    return {"partial": not cluster.is_complete, "workloads": [_workload(cluster, namespace, each) for each in reports]}


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


class _NoSuchWorkload(Exception):
    """Raised if a workload does not exist. The message lists those that do."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m diagnosis", description=__doc__)
    parser.add_argument("-n", "--namespace", help=f"the workloads' namespace (default: {WORKLOAD_NAMESPACE})")
    parser.add_argument(
        "workload",
        nargs="*",
        help="name of a Job, Volcano Job, Deployment, StatefulSet, Pod, AppWrapper, RayJob, RayService, RayCronJob, "
        "RayCluster, or a PyTorchJob, TFJob, MPIJob, XGBoostJob, PaddleJob or JAXJob; pytorchjob/train if "
        "several have the name train",
    )
    parser.add_argument(
        "--azure-error", metavar="FILE", help="explain Azure's error in a log of pulumi instead; - reads standard input"
    )
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text", help="the format (default: text)")
    parser.add_argument(
        "--watch", action="store_true", help="with --output json: print the document, on one line, every second"
    )
    options = parser.parse_args(argv)
    if options.watch and options.output != "json":
        parser.error("--watch prints JSON documents only. Add: --output json")
    if options.azure_error:
        return _explain(Path(options.azure_error))
    namespace, as_json = options.namespace or WORKLOAD_NAMESPACE, options.output == "json"
    try:
        if options.watch:
            return _watch(namespace, options.workload)
        _print(namespace, options.workload, as_json=as_json)
        if options.namespace and not options.workload and not as_json:
            own = Cluster(kubectl.read_own, only=options.namespace)
            there = ", ".join(names(own, options.namespace)) or "none"
            print(f"not checked: workloads in namespace {options.namespace}. To check them, add their names: {there}")
    except (kubectl.KubectlFailed, _NoSuchWorkload) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _explain(log: Path) -> int:
    """Explains the Azure errors in a log. Returns 1 if it finds no known error (docs/azure-errors.md)."""
    try:
        text = sys.stdin.read() if log.name == "-" else _text(log.read_bytes())
    except OSError as error:
        print(f"error: {log} cannot be read: {error.strerror}", file=sys.stderr)
        return 1
    found = explain_log(text)
    none = "found no known Azure error; docs/azure-errors.md lists the known errors"
    print("\n".join(map(str, found)) or none)
    return 0 if found else 1


def _text(log: bytes) -> str:
    """Decodes a log, which PowerShell writes in UTF-16."""
    return log.decode(json.detect_encoding(log), errors="replace")


def _watch(namespace: str, workloads: Sequence[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    judge = functools.lru_cache(functools.partial(_judged, namespace))
    with kubectl.reading_often() as read, contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        while True:
            cluster = Cluster(read)
            reports = [judge(each) for each in _reports(cluster, namespace, workloads)]
            print(json.dumps(_document(cluster, namespace, workloads, reports)), flush=True)
            time.sleep(_WATCH_S)
    return 0


def _document(cluster: Cluster, namespace: str, workloads: Sequence[str], reports: Sequence[Report]) -> Object:
    return workloads_document(cluster, namespace, reports) if workloads else platform_document(cluster, reports[0])


def _print(namespace: str, workloads: Sequence[str], *, as_json: bool) -> None:
    cluster = Cluster(kubectl.read)
    try:
        reports = _reports(cluster, namespace, workloads)
    except kubectl.Forbidden:
        if not workloads:
            raise
        cluster = Cluster(kubectl.read_own, only=namespace)
        cluster.all(POD, namespace)  # raises Forbidden if the user may not read this namespace
        reports = _reports(cluster, namespace, workloads)
    reports = [_judged(namespace, each) for each in reports]
    if as_json:
        print(json.dumps(_document(cluster, namespace, workloads, reports), indent=2))
    printed: dict[Finding, str] = {}
    for each in reports:
        if each.phase != GONE and not as_json:
            print("\n".join(each.lines(printed)))
            printed = dict.fromkeys(each.findings, each.name) | printed
    if gone := [each.name for each in reports if each.phase == GONE]:
        there = ", ".join(names(cluster, namespace)) or "none"
        raise _NoSuchWorkload(f"namespace {namespace} has no workload {', '.join(gone)}; its workloads: {there}")
    if not cluster.is_complete and not as_json:
        print(_NOT_SEEN)


def _reports(cluster: Cluster, namespace: str, workloads: Sequence[str]) -> list[Report]:
    named = [each for name in workloads for each in with_kinds(cluster, namespace, name)]
    return [report(cluster, namespace, name) for name in named] or [platform(cluster)]


def _judged(namespace: str, report: Report) -> Report:
    labels = selector(report.kind, report.name.rpartition("/")[2], report.uid)
    if not labels or report.phase not in (*BAD, *DONE):
        return report
    return report.judged(*kubectl.last_lines(namespace, labels))


if __name__ == "__main__":
    sys.exit(main())
