"""What `make up` prints at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.command.up import _use_context


@pytest.mark.parametrize(
    ("selected", "line"), [("ai-dev+ai-dev", ""), ("ai-x+ai-x", "`kubectl config use-context ai-dev+ai-dev`.\n")]
)
def test_the_context_is_printed_while_kubectl_uses_another_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, selected: str, line: str
) -> None:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    (tmp_path / "kubeconfig").write_text(f"current-context: {selected}")
    cluster = "/subscriptions/s/resourceGroups/ai-dev/providers/Microsoft.ContainerService/managedClusters/ai-dev"
    assert _use_context(cluster).endswith(line)
    assert bool(_use_context(cluster)) == bool(line)
