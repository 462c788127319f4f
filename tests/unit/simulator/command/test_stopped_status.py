from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from rich.console import Console

from simulator.azure.ids import parse_id
from simulator.azure.store import Record
from simulator.command import environment, status
from simulator.host import paths

CLUSTER = "/subscriptions/s/resourceGroups/ai-dev/providers/Microsoft.ContainerService/managedClusters/dev"


@pytest.mark.parametrize("state", ["Stopped", "Running"])
def test_shows_the_command_that_starts_a_stopped_cluster(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    name = paths.cluster(CLUSTER).name
    environment.kubeconfig_file().write_text(yaml.safe_dump({"contexts": [{"name": name}]}))
    admin = tmp_path / "clusters" / name / "admin.kubeconfig"
    admin.parent.mkdir(parents=True)
    clusters = [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}]
    user = {"name": "u", "user": {}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    config = {"clusters": clusters, "users": [user], "contexts": [context], "current-context": "x"}
    admin.write_text(yaml.safe_dump(config))
    records = [Record(parse_id(CLUSTER), {"properties": {"powerState": {"code": state}}})]
    monkeypatch.setattr(status, "records", lambda _: records)
    status._clusters(Console(width=60))
    command = "az aks start --resource-group ai-dev --name dev    # in `make shell`"
    start = f"the cluster {name} is stopped. To start it: {command}\n"
    output = capsys.readouterr().out
    assert (output == start) == (state == "Stopped")
    assert ("does not answer" in output) == (state == "Running")
