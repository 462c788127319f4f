from __future__ import annotations

import httpx
import pytest

from simulator.command import recovery
from simulator.plugins.kubernetes.options import GOES_ON
from tests.support.case_files import case_table


@case_table(__file__, "histories")
def test_adopts_unrecorded_changes_if_the_last_update_failed(
    history: list[str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`history` is newest first, as in Pulumi. A refresh does not count."""
    entries = [dict(zip(("kind", "result"), each.split(), strict=True)) for each in history]
    monkeypatch.setattr(recovery, "read", lambda *_, **__: entries)
    reported: list[str] = []
    assert recovery.continuation("dev", reported.append) == ({GOES_ON: "true"} if expected else {})
    assert bool(reported) is expected


def test_ignores_a_stopped_cluster_which_the_update_will_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(_: object) -> list[str]:
        raise httpx.ConnectError("Connection refused")

    monkeypatch.setattr(recovery, "read", lambda *_, **__: {})
    monkeypatch.setattr(recovery, "_free_lock", lambda *_: None)
    monkeypatch.setattr(recovery, "_kubeconfig", lambda _: {"clusters": []})
    monkeypatch.setattr(recovery, "release_leftovers", stopped)
    recovery.recover("dev", print)
