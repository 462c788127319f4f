from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import report
import search
from bisection import BAD, GOOD, UNKNOWN, Finding, Group, Outcome, Report

from tests.support.case_files import case_table
from workloads.nccl_bisection.__main__ import main
from workloads.nccl_bisection.picture import COLOURS, LINE, NoResult, result, svg

PORTS = ("mlx5_0:1", "mlx5_1:1")
UP = " ".join(f"{port}=ACTIVE" for port in PORTS)


def fleet(*lines: str) -> search.Fleet:
    return search.Fleet.read(lines, hcas=2)


def test_reads_the_nodes_output() -> None:
    found = fleet(
        "HOST w-0.job", "HOST w-1.job", f"NODE w-1 vmss1 {UP}", f"noise NODE w-1 {UP}", f"NODE w-0 vmss0 {UP}"
    )
    assert list(found.hosts.items()) == [("vmss0", "w-0.job"), ("vmss1", "w-1.job")]
    assert (found.ports, found.down, found.left_out) == (PORTS, {}, {})


def test_sorts_ports_by_number() -> None:
    ports = [f"mlx5_{number}:1" for number in (10, 9, 2)]
    found = search.Fleet.read(["HOST w-0.job", f"NODE w-0 vmss0 {' '.join(f'{port}=ACTIVE' for port in ports)}"], 3)
    assert found.ports == ("mlx5_2:1", "mlx5_9:1", "mlx5_10:1")


def test_reads_ports_that_are_down() -> None:
    found = fleet("HOST w-0.job", "NODE w-0 vmss0 mlx5_0:1=ACTIVE mlx5_1:1=DOWN")
    assert found.down == {("vmss0", 1): "port is DOWN"}


def test_leaves_out_unusable_nodes_with_the_reason() -> None:
    found = fleet(
        "HOST w-0.job", "HOST w-1.job", "HOST w-2.job", "LOST w-3.job no ssh within 10 s",
        f"NODE w-0 vmss0 {UP}", "NODE w-1 vmss1 mlx5_0:1=ACTIVE",
    )  # fmt: skip
    assert list(found.hosts) == ["vmss0"]
    assert found.left_out == {
        "w-3.job": "no ssh within 10 s",
        "w-2.job": "did not list its HCAs",
        "vmss1": "has other InfiniBand ports than most nodes: mlx5_0:1",
    }


@case_table(__file__, "outcomes")
def test_a_measurement_is_good_bad_or_unknown(code: int, printed: str, expected: dict[str, Any]) -> None:
    assert search.outcome(code, printed, 42.5) == Outcome(**expected)


@pytest.mark.parametrize(
    ("group", "floor"),
    [
        (Group(("a", "b", "c"), (0, 1)), 340),
        (Group(("a", "b", "c"), (1,)), 170),
        (Group(("a", "b"), (1,)), 180),
        (Group(("a",), (1,)), 460),
    ],
)
def test_each_rail_has_its_share_of_the_floor(group: Group, floor: float) -> None:
    meter = search.Meter(fleet("HOST w", f"NODE w a {UP}"), {"one": 460, "two": 360, "many": 340}, {})
    assert meter.floor(group) == floor


def searched(*findings: Finding, left_out: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    found = Report(6, 17, list(findings), rest=Outcome(GOOD, 367.7, 340), **more)
    nodes = ("vmss0", "vmss1", "vmss2")
    return report.result({"vmSize": "Standard_H", "pool": "gpu"}, nodes, PORTS, found, left_out or {})


LINK = Finding("link", Outcome(BAD, 11.4, 42.5), "vmss1", 1)
RAIL = Finding("rail", Outcome(BAD, 11.4, 42.5), rail=0)
LOST = Finding("node", Outcome(UNKNOWN, why="no result"), "vmss2")


@pytest.mark.parametrize(
    ("findings", "code", "verdict"),
    [
        ((), 0, "VERDICT: PASS; busbw=367.70 GB/s floor=340 GB/s nodes=3 rounds=6 measurements=17"),
        ((LINK, RAIL), 1, "VERDICT: FAIL bad: link mlx5_1 of vmss1, rail mlx5_0; rest=367.70 GB/s floor=340 GB/s"),
        ((LOST,), 2, "VERDICT: UNKNOWN not measured: node vmss2; rest="),
        ((LOST, LINK), 1, "VERDICT: FAIL bad: link mlx5_1 of vmss1; rest="),
        ([Finding("node", LINK.outcome, f"n{n}") for n in range(9)], 1, "node n7 and 1 more; rest="),
    ],
)
def test_the_last_line_is_the_verdict(findings: tuple[Finding, ...], code: int, verdict: str) -> None:
    found = searched(*findings)
    assert verdict in list(report.lines(found))[-1]
    assert report.exit_code(found) == code


def test_the_table_has_a_row_for_each_finding() -> None:
    lines = list(report.lines(searched(LINK, LOST, chance=[Finding("pool", LINK.outcome)])))
    assert [line.split() for line in lines[:3]] == [
        ["what", "node", "rail", "busbw", "floor", "state", "why"],
        ["link", "vmss1", "mlx5_1", "11.40", "42.5", "bad"],
        ["node", "vmss2", "unknown", "no", "result"],
    ]
    assert "measured bad once and then good, so not counted: pool" in lines


def test_draws_the_picture_from_the_json_in_the_log() -> None:
    found = searched(LINK, RAIL, left_out={"w-3.job": "no ssh"})
    log = "\n".join(["round 1: ...", *report.lines(found)])
    assert result(log) == found == result(json.dumps(found))
    assert LINE == report.JSON
    colours = squares(svg(found))
    assert colours["vmss1 mlx5_1"] == COLOURS["bad"]
    assert colours["vmss0 mlx5_1"] == colours["vmss2 mlx5_1"] == COLOURS["good"]
    assert {colours[f"{node} mlx5_0"] for node in ("vmss0", "vmss1", "vmss2")} == {COLOURS["bad"]}
    assert colours["w-3.job mlx5_1"] == COLOURS["unknown"]


def squares(document: str) -> dict[str, str]:
    root = ElementTree.fromstring(document)  # noqa: S314  our own text
    space = "{http://www.w3.org/2000/svg}"
    rects = {rect.findtext(f"{space}title", ""): rect.get("fill", "") for rect in root.iter(f"{space}rect")}
    return {title.partition(":")[0]: colour for title, colour in rects.items() if title}


def test_a_large_picture_only_labels_bad_nodes() -> None:
    nodes = tuple(f"vmss{number:06d}" for number in range(1000))
    found = report.result({}, nodes, PORTS, Report(findings=[Finding("node", LINK.outcome, nodes[700])]), {})
    document = svg(found)
    assert len(squares(document)) == 2000
    assert [node for node in nodes if f">{node}<" in document] == [nodes[700]]


@pytest.mark.parametrize("text", ["", "VERDICT: UNKNOWN no ssh", "[]", '{"nodes": []}', "JSON {"])
def test_rejects_text_without_a_result(text: str) -> None:
    with pytest.raises(NoResult):
        result(text)


def test_the_command_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"JSON {json.dumps(searched(LINK))}\nVERDICT: FAIL"))
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("<svg")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_the_command_reads_logs_from_powershell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], encoding: str
) -> None:
    (tmp_path / "log").write_bytes(f"began\r\nJSON {json.dumps(searched(LINK))}\r\n".encode(encoding))
    assert main([str(tmp_path / "log")]) == 0
    assert capsys.readouterr().out.startswith("<svg")


def test_the_command_reports_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nowhere")]) == 1
    (tmp_path / "log").write_text("VERDICT: UNKNOWN no ssh\n")
    assert main([str(tmp_path / "log")]) == 1
    error = capsys.readouterr().err
    assert "No such file" in error
    assert "the search has not ended, or this is another log" in error
