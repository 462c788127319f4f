"""Reads reports of `python -m diagnosis --output json` (docs/diagnosis.md)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from k8s.objects import Object
from simulator.host import paths

_REAL_COMMAND = re.compile(r"(    do: ).*\s+# on the simulator: ")


class DiagnosisFailed(Exception):
    """The command failed. The message is from the command."""


@dataclass(frozen=True)
class Finding:
    """A reason why a workload waits."""

    why: str
    text: str
    lasts: bool = False
    shared: bool = False
    passing: bool = False


@dataclass(frozen=True)
class Report:
    """The document's part about one workload."""

    name: str
    phase: str
    outcome: str
    text: str
    kind: str = ""
    findings: tuple[Finding, ...] = ()
    verdicts: tuple[str, ...] = ()
    exits: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()


def read(workload: Object) -> Report:
    texts = {name: str(workload[name]) for name in ("name", "phase", "outcome", "text", "kind")}
    exits, objects, pods = (tuple(workload[name]) for name in ("exits", "objects", "pods"))
    verdicts = tuple(line for line in workload["verdicts"] if line.startswith("VERDICT:"))  # else: a log is unreadable
    findings = tuple(map(_finding, workload["findings"]))
    return Report(**texts, findings=findings, verdicts=verdicts, exits=exits, objects=objects, pods=pods)


@contextlib.contextmanager
def watching(kubeconfig: Path, names: Mapping[str, Sequence[str]]) -> Iterator[Callable[[], list[tuple[str, Report]]]]:
    """Yields a function that waits for the next report on each workload, and returns (namespace, report) pairs.

    `names` are the workloads by namespace. The function raises DiagnosisFailed.
    """
    with contextlib.ExitStack() as stack:
        running = {
            namespace: stack.enter_context(_running(kubeconfig, "--watch", "-n", namespace, *own))
            for namespace, own in names.items()
        }
        yield lambda: [(name, read(each)) for name, process in running.items() for each in _next(process)["workloads"]]


def platform(kubeconfig: Path) -> Object:
    """Returns the document's part about the platform. Raises DiagnosisFailed."""
    with _running(kubeconfig) as process:
        output, errors = process.communicate()
    if process.returncode:
        raise DiagnosisFailed(errors.strip())
    found: Object = json.loads(output)["platform"]
    return found


def texts(findings: Sequence[Object]) -> list[str]:
    return [_finding(each).text for each in findings]


@contextlib.contextmanager
def _running(kubeconfig: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    path = os.pathsep.join([str(paths.tools_bin()), os.environ.get("PATH", "")])
    with subprocess.Popen(
        [sys.executable, "-m", "diagnosis", "--output", "json", *arguments],
        env={**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": path},
        cwd=paths.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def _next(process: subprocess.Popen[str]) -> Object:
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        raise DiagnosisFailed(process.stderr.read().strip() if process.stderr else "")
    found: Object = json.loads(line)
    return found


def _finding(found: Object) -> Finding:
    text = _REAL_COMMAND.sub(r"\1", found["text"])
    return Finding(found["why"], text, **{name: found[name] for name in ("lasts", "shared", "passing")})
