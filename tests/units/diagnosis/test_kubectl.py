"""What kubectl refuses is told in its words, with what is behind them."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosis import kubectl
from diagnosis.cluster import NODE, POD


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (
            'Error from server (Forbidden): nodes is forbidden: User "alice@example.com" cannot list resource "nodes"',
            "Members of a team ask of what is theirs",
        ),
        (
            "dial tcp: lookup ai.privatelink.eastus.azmk8s.io on 10.0.0.10:53: no such host",
            "this machine is outside its network",
        ),
    ],
)
def test_a_refusal_names_who_can_look(says: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kubectl").write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 1\n")
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(kubectl.KubectlFailed) as refused:
        kubectl.read(NODE, "")
    assert says in str(refused.value)
    assert told in str(refused.value)


def test_a_kind_that_the_cluster_does_not_have_has_no_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'error: the server doesn\'t have a resource type "pods"'
    (tmp_path / "kubectl").write_text(f'#!/bin/sh\ncat >&2 <<"E"\n{text}\nE\nexit 1\n')
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert kubectl.read(POD, "blue") == []
