"""When `make up` takes what it finds as made by an update before it."""

from __future__ import annotations

import httpx
import pytest

from simulator.command import recovery
from simulator.plugins.kubernetes.options import GOES_ON
from tests.support.case_files import case_table


@case_table(__file__, "histories")
def test_it_follows_from_the_last_update_that_changed_something(
    history: list[str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`history` is newest first, as Pulumi prints it. A recovery refreshes, which mends nothing by itself."""
    entries = [dict(zip(("kind", "result"), each.split(), strict=True)) for each in history]
    monkeypatch.setattr(recovery, "read", lambda *_, **__: entries)
    said: list[str] = []
    assert recovery.goes_on("dev", said.append) == ({GOES_ON: "true"} if expected else {})
    assert bool(said) is expected


def test_a_stopped_cluster_does_not_keep_an_update_from_reporting_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(_: object) -> list[str]:
        raise httpx.ConnectError("Connection refused")

    monkeypatch.setattr(recovery, "read", lambda *_, **__: {})
    monkeypatch.setattr(recovery, "_free_lock", lambda *_: None)
    monkeypatch.setattr(recovery, "_kubeconfig", lambda _: {"clusters": []})
    monkeypatch.setattr(recovery, "release_leftovers", stopped)
    recovery.recover("dev", print)
