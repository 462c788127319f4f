"""The cluster's update reports what happens to node pools, and shows none as removed."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from pulumi.runtime import rpc

from components.existing_cluster import PROFILES, report_pool_changes
from tests.support.mocks import deploy

SYSTEM: dict[str, Any] = {"name": "system", "count": 1, "vmSize": "Standard_D4s_v5"}
GPU: dict[str, Any] = {"name": "gpuba3d", "count": 3, "vmSize": "Standard_ND96isr_H100_v5", "maxPods": 250}
AS_REFRESHED = {**SYSTEM, "maxPods": 250, "enableFIPS": False}
STAY = "node pools gpuba3d stay as they are"


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ([SYSTEM], [SYSTEM], []),
        ([SYSTEM], [SYSTEM | {"count": 2}], ["node pool system: count 1 -> 2"]),
        ([SYSTEM], [SYSTEM | {"count": 2.0}], ["node pool system: count 1 -> 2"]),
        ([SYSTEM], [SYSTEM | {"tags": rpc.UNKNOWN}], ["node pool system: tags unset -> known after the update"]),
        ([SYSTEM, GPU], [SYSTEM], [STAY]),
        ([GPU, AS_REFRESHED], [SYSTEM], [STAY]),
        ([GPU, AS_REFRESHED], [SYSTEM | {"count": 2}], ["node pool system: count 1 -> 2", STAY]),
    ],
    ids=[
        "the same", "scaled", "a number of the engine", "unknown",
        "after a refresh", "in another order", "in another order, and scaled",
    ],
)  # fmt: skip
def test_an_update_reports_declared_pools_that_change_and_others_that_stay(
    before: list[Any], after: list[Any], lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(pulumi.log, "info", logged.append)

    def update() -> None:
        hook = report_pool_changes()
        assert hook.opts
        assert hook.opts.on_dry_run
        old, new = {PROFILES: before}, {PROFILES: after}
        hook(pulumi.ResourceHookArgs(urn="", id="", name="", type="", old_inputs=old, new_inputs=new))

    deploy(update)
    assert len(logged) == len(lines)
    assert all(found.startswith(line) for found, line in zip(logged, lines, strict=True))
