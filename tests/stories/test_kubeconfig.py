"""The kubeconfig of `make shell`: every cluster of the simulator, and the choice of whoever uses it kept."""

from __future__ import annotations

import pytest

from simulator.command.daemon import merged

CONFIGS = {
    name: {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}"}}],
        "users": [{"name": "admin", "user": {"client-key-data": name}}],
    }
    for name in ("dev", "foo")
}


@pytest.mark.parametrize(("chosen", "current"), [(None, "dev"), ("foo", "foo"), ("destroyed", "dev")])
def test_the_chosen_context_stays_while_its_cluster_runs(chosen: str | None, current: str) -> None:
    assert merged(CONFIGS, chosen)["current-context"] == current


def test_each_cluster_has_a_context_with_its_own_user() -> None:
    found = merged(CONFIGS, None)
    assert [context["context"] for context in found["contexts"]] == [
        {"cluster": "dev", "user": "dev"},
        {"cluster": "foo", "user": "foo"},
    ]
    assert {user["name"]: user["user"]["client-key-data"] for user in found["users"]} == {"dev": "dev", "foo": "foo"}
