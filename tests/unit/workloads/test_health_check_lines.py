"""Checks of one's own, as aznhc's configuration has them: what is refused, and why."""

from __future__ import annotations

import pytest

from config.data.skus import catalogue
from tests.support.case_files import read, rows
from tests.support.pools import A100, H100, T4, pool
from workloads._lib.aznhc import configuration
from workloads.health_check.lines import CHOSEN, faults, parsed

CASES = read(__file__, "health_check_lines")


def said(line: str, sku: str = H100) -> str:
    return "; ".join(what for what, _ in faults(pool(sku).sku, line))


@pytest.mark.parametrize(("line", "why"), rows(CASES["refused"]))
def test_what_no_healthy_node_could_pass_is_refused(line: str, why: str) -> None:
    assert why in said(line)


def test_infiniband_is_not_checked_where_there_is_none() -> None:
    assert "which Standard_NC4as_T4_v3 does not have" in said("check_ib_bw_gdr 100", T4)


@pytest.mark.parametrize("name", [size.name for size in catalogue().values() if size.gpus and size.supported])
def test_what_is_generated_is_never_refused(name: str) -> None:
    text = configuration(catalogue()[name], "/opt/topology.xml")
    lines = [line for line in text.splitlines() if "||" in line and parsed(line)[0] in CHOSEN]
    assert lines
    assert not [line for line in lines if said(line, name)]


def test_a_check_of_ones_own_takes_the_place_of_its_name() -> None:
    text = configuration(pool(A100).sku, "/opt/t.xml", own=[parsed("* || check_ib_bw_gdr 190")])
    assert [line for line in text.splitlines() if "check_ib_bw_gdr" in line] == [" * || check_ib_bw_gdr 190"]
