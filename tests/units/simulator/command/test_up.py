"""What `make up` says of an update that takes long."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from simulator.command.up import _tools_being_made, _use_context
from simulator.host import paths


def test_tools_are_named_while_a_pod_of_the_stack_needs_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AI_ON_AKS_CACHE", str(tmp_path))
    (tmp_path / "step").write_text("[3/9] kuberay-operator 1.6.2: building")
    with (tmp_path / "tools.lock").open("w") as other:
        assert _tools_being_made("mlbatch") == [], "left by a run that has ended"
        fcntl.flock(other, fcntl.LOCK_EX)
        (line,) = _tools_being_made("mlbatch")
        assert "need tools that are being made (pulumi, " in line
        assert line.endswith("): [3/9] kuberay-operator 1.6.2: building (0:00)")
        paths.tools_bin().mkdir()
        for name in ("pulumi", "kubectl"):
            (paths.tools_bin() / name).touch()
        monkeypatch.setattr("simulator.command.up.of_stack", lambda tools, _: tools.named(["pulumi", "kubectl"]))
        assert _tools_being_made("dev") == [], "another checkout makes what this stack does not need"


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
