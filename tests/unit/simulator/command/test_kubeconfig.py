from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from simulator.azure.ids import parse_id
from simulator.azure.store import Record, Store
from simulator.command.daemon import KubeconfigFile, merged
from simulator.command.environment import kubeconfig_file

CONFIGS = {
    name: {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}"}}],
        "users": [{"name": "admin", "user": {"client-key-data": name}}],
    }
    for name in ("dev", "foo")
}


@pytest.mark.parametrize(("chosen", "current"), [(None, "dev"), ("foo", "foo"), ("destroyed", "dev")])
def test_keeps_the_current_context_while_its_cluster_exists(chosen: str | None, current: str) -> None:
    assert merged(CONFIGS, chosen)["current-context"] == current


def test_each_cluster_has_a_context_and_a_user() -> None:
    found = merged(CONFIGS, None)
    assert [context["context"] for context in found["contexts"]] == [
        {"cluster": "dev", "user": "dev"},
        {"cluster": "foo", "user": "foo"},
    ]
    assert {user["name"]: user["user"]["client-key-data"] for user in found["users"]} == {"dev": "dev", "foo": "foo"}


def test_stopped_and_new_clusters_have_contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    planes = {
        name: SimpleNamespace(plane=SimpleNamespace(for_users=lambda name=name: CONFIGS[name])) for name in CONFIGS
    }
    running: dict[str, Any] = {"dev": planes["dev"]}
    store = Store(tmp_path / "azure")
    file = KubeconfigFile(SimpleNamespace(all=lambda: running), store)  # type: ignore[arg-type]
    file.write()
    cluster = parse_id("/subscriptions/s/providers/Microsoft.ContainerService/managedClusters/dev")
    store.put(Record(cluster, {"location": "eastus", "properties": {"powerState": {"code": "Stopped"}}}))
    running.pop("dev")
    running["foo"] = planes["foo"]
    file.write()
    assert {each["name"] for each in yaml.safe_load(kubeconfig_file().read_text())["contexts"]} == {"dev", "foo"}
