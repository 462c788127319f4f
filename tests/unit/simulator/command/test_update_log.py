from __future__ import annotations

import json
import time
from typing import Any

import pytest

from simulator.command.update_log import UpdateLog
from tests.support.case_files import case_table

PLATFORM = "urn:pulumi:dev::ai-on-aks::ai-on-aks:platform:Platform"
FOUNDATION = "urn:pulumi:dev::ai-on-aks::ai-on-aks:foundation:Foundation"
CLUSTER = f"{FOUNDATION}$ai-on-aks:azure/cluster:Cluster$azure-native:containerservice:ManagedCluster::cluster"
POOL = f"{PLATFORM}$ai-on-aks:azure/node_pools:NodePools$azure-native:containerservice:AgentPool::pool-gpu"
VOLCANO = (
    f"{PLATFORM}$ai-on-aks:operators/operators:Operators$ai-on-aks:operators/volcano:Volcano$kubernetes:x::volcano"
)
JOB = "urn:pulumi:dev::ai-on-aks::ai-on-aks:workloads/olmo:WorkloadComponent$kubernetes:batch/v1:Job::olmo"
STACK = "urn:pulumi:dev::ai-on-aks::pulumi:pulumi:Stack::ai-on-aks-dev"


@pytest.fixture
def written() -> list[str]:
    return []


@pytest.fixture
def log(written: list[str]) -> UpdateLog:
    return UpdateLog(written.append)


def begins(op: str, urn: str) -> str:
    return json.dumps({"resourcePreEvent": {"metadata": {"op": op, "urn": urn}}})


def ends(urn: str, how: str = "resOutputsEvent") -> str:
    return json.dumps({how: {"metadata": {"op": "create", "urn": urn}}})


def summary(**changes: int) -> str:
    return json.dumps({"summaryEvent": {"resourceChanges": changes}})


def message(text: str, severity: str, urn: str = "", **more: Any) -> str:
    found = {"prefix": f"{severity}: ", "message": text, "severity": severity, "urn": urn, **more}
    return json.dumps({"diagnosticEvent": found})


def test_prints_a_phase_once_at_its_first_change(log: UpdateLog, written: list[str]) -> None:
    events = [
        ("create", STACK),
        ("create", f"{PLATFORM}::platform"),
        ("create", CLUSTER),
        ("same", POOL),
        ("create", VOLCANO),
        ("create", VOLCANO + "-2"),
        ("update", JOB),
    ]
    for op, urn in events:
        log.event(begins(op, urn))
    assert written == ["0:00 creating cluster", "0:00 creating operators", "0:00 updating workloads"]


@case_table(__file__, "replacements")
def test_a_replacement_counts_once(
    log: UpdateLog, written: list[str], ops: str, changes: dict[str, int], lines: list[str]
) -> None:
    for op in ops.split():
        log.event(begins(op, POOL))
    log.event(summary(**changes))
    *steps, counts = lines
    assert written == [f"0:00 {line}" for line in (*steps, f"resources: {counts}")]


def test_prints_complete_messages_without_those_of_the_engine(log: UpdateLog, written: list[str]) -> None:
    error = 'error: Code="AlreadyInUse"\n  The registry DNS name is taken.\n'
    log.event(message("beginning rpc invoke\n", "debug"))
    log.event(message("[1/2] waiting\n", "info", JOB, ephemeral=True))
    log.event(message("a pool without nodes\n", "warning", STACK))
    log.event(message(error, "error", CLUSTER, prefix=""))
    log.event(message("printed by the program\n", "info#err", prefix=""))
    assert written == [
        "warning: a pool without nodes",
        f"azure-native:containerservice:ManagedCluster cluster: {error.strip()}",
        "printed by the program",
    ]


def test_prints_other_output_unchanged(log: UpdateLog, written: list[str]) -> None:
    log.event("error: the stack is currently locked\n")
    assert written == ["error: the stack is currently locked"]


def test_the_summary(log: UpdateLog, written: list[str]) -> None:
    log.event(summary(create=80, same=2, discard=1, **{"import": 1}))
    log.event(summary())
    assert written == ["0:00 resources: 80 created, 2 unchanged, 1 import", "0:00 resources: none"]


def test_does_not_count_the_stack_itself(log: UpdateLog, written: list[str]) -> None:
    for urn in (STACK, CLUSTER):
        log.event(begins("create", urn))
        log.event(summary(create=1))
    assert (written[0], written[-1]) == ("0:00 resources: none", "0:00 resources: 1 created")


def test_prints_pending_operations_and_known_reasons_after_half_a_minute(
    written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, start = UpdateLog(written.append, lambda: ["  waits: a pod", "    do: something"]), time.monotonic()
    for urn in (CLUSTER, POOL, VOLCANO, JOB, JOB + "-2"):
        log.event(begins("create", urn))
    log.event(ends(CLUSTER))
    log.event(ends(VOLCANO, "resOpFailedEvent"))
    written.clear()
    log.tick()
    assert written == []
    monkeypatch.setattr(time, "monotonic", lambda: start + 31)
    log.tick()
    log.tick()
    pending = "0:31 still creating pool-gpu, creating olmo, creating olmo-2"
    assert written == [f"{pending}\n  waits: a pod\n    do: something"]
