from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator.kube.client import KubeClient
from tests.contract.conformance import stack
from tests.contract.conformance.stack import ConformanceStack
from tests.support.plugin_cluster import control_plane, kube, kubeconfig, write_chart

__all__ = ["control_plane", "kube", "kubeconfig"]  # shared with the emulated plugin's tests
ROW = "conformance row"
WIDTH = 72
NewStack = Callable[[], ConformanceStack]


class Rows:
    """Comparisons of a test. Each method fails at once; the table has all comparisons so far."""

    def __init__(self, record: Callable[[str, object], None], section: str) -> None:
        self._record = record
        self._section = section

    def is_(self, row: str, expected: Any, seen: Any) -> None:
        self._note(row, _text(expected), _text(seen))
        assert seen == expected, row

    def contains(self, row: str, expected: str, output: str) -> None:
        """Compares words without whitespace, because the CLI wraps and indents lines."""
        text, wanted = " ".join(output.split()), " ".join(expected.split())
        self._note(row, wanted, wanted if wanted in text else "other words")
        assert wanted in text, output

    def matches(self, row: str, pattern: str, seen: str) -> None:
        self._note(row, f"like {pattern}", seen)
        assert re.fullmatch(pattern, seen), row

    def _note(self, row: str, expected: str, seen: str) -> None:
        self._record(ROW, [self._section, row, expected, seen])


@pytest.fixture
def rows(record_property: Callable[[str, object], None], request: pytest.FixtureRequest) -> Rows:
    return Rows(record_property, request.module.SECTION)


@pytest.fixture(scope="session", autouse=True)
def _installed() -> None:
    stack.serving()


@pytest.fixture(scope="module")
def new_stack(tmp_path_factory: pytest.TempPathFactory, kubeconfig: str) -> NewStack:
    return lambda: ConformanceStack(tmp_path_factory.mktemp("stack"), kubeconfig)


@pytest.fixture(scope="module")
def space(kube: KubeClient, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"conformance-{request.module.__name__.rpartition('test_')[2]}"
    kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    kube.delete("v1", "Namespace", name)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_chart(tmp_path_factory.mktemp("charts") / "demo")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [report for found in terminalreporter.stats.values() for report in found]
    calls = [report for report in reports if getattr(report, "when", "") == "call"]
    found = [value for report in calls for name, value in report.user_properties if name == ROW]
    if not found:
        return
    terminalreporter.section("conformance of the kubernetes plugin")
    terminalreporter.line(f"served by {_shown(stack.serving())}")
    for section, row, expected, seen in found:
        agree = _agree(expected, seen)
        verdict, shown = ("same", "the same" if expected == seen else seen) if agree else ("DIFFERS", _short(seen))
        terminalreporter.line(f"{verdict:8}{section}: {row} | {_short(expected)} | {shown}")
    differing = sum(not _agree(expected, seen) for _, _, expected, seen in found)
    terminalreporter.line(f"{len(found)} rows, {differing} differ")


def _text(value: Any) -> str:
    return json.dumps(sorted(value) if isinstance(value, set) else value, sort_keys=True).strip('"')


def _agree(expected: str, seen: str) -> bool:
    pattern = expected.removeprefix("like ")
    return expected == seen or (pattern != expected and bool(re.fullmatch(pattern, seen)))


def _short(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 2]}.."


def _shown(path: Path) -> str:
    return f"{'the official plugin' if stack.official() else 'the emulated plugin'}, {path}"
