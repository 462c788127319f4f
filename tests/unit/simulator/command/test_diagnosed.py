from __future__ import annotations

from pathlib import Path

import pytest

from simulator.command import diagnosed
from simulator.host import paths
from tests.support import kubectl_proxy

JOB = {"metadata": {"name": "train", "namespace": "ai", "uid": "u"}, "spec": {}, "status": {}}


def test_each_report_has_all_workloads_with_their_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "tools_bin", lambda: tmp_path)
    kubectl_proxy.install(tmp_path, {"/apis/batch/v1/namespaces/ai/jobs": (200, {"items": [JOB]})})
    with diagnosed.watching(tmp_path / "kubeconfig", {"ai": ["train"], "team": ["other"]}) as look:
        first, second = look(), look()
    assert first == second
    assert [(namespace, each.name, each.outcome) for namespace, each in first] == [
        ("ai", "train", "pending"),
        ("team", "other", "failed"),
    ]


def test_reports_the_error_of_a_failed_diagnosis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "tools_bin", lambda: tmp_path)
    kubectl_proxy.install(tmp_path, {"/api/v1/pods": (500, {"message": "etcdserver: no leader"})})
    with (
        diagnosed.watching(tmp_path / "kubeconfig", {"ai": ["train"]}) as look,
        pytest.raises(diagnosed.DiagnosisFailed, match="etcdserver: no leader"),
    ):
        look()
