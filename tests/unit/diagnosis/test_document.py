from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from diagnosis import kubectl
from diagnosis.cluster import CLUSTER_POLICY, POD, VOLCANO_JOB
from simulator.host.paths import ROOT
from tests.support import kubectl_proxy
from tests.support.kubectl_proxy import script
from tests.unit.diagnosis.conftest import Run, Serve

PAGE = (ROOT / "docs" / "diagnosis.md").read_text("utf-8")
JOB = {"metadata": {"name": "train", "namespace": "ai", "uid": "u"}, "spec": {}, "status": {}}
POLICY = {"metadata": {"name": "p", "uid": "p"}, "status": {"state": "notReady"}}


def described(heading: str) -> set[str]:
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return {name for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}


def test_the_document_has_the_fields_that_the_page_describes(serve: Serve, run: Run) -> None:
    serve(jobs_v1_batch=[JOB])
    code, output, _ = run("-n", "ai", "train", "--output", "json")
    document = json.loads(output)
    (workload,) = document["workloads"]
    assert (code, document["partial"]) == (0, False)
    assert set(workload) == described("Workloads")
    assert all(set(each) == described("Findings") for each in workload["findings"])
    assert (workload["outcome"], workload["objects"], workload["pods"]) == ("pending", ["u"], [])
    assert workload["findings"][0]["text"].startswith(f"  waits: {workload['findings'][0]['why']}")


def test_a_workload_that_does_not_exist_has_failed(serve: Serve, run: Run) -> None:
    serve()
    code, output, errors = run("-n", "ai", "train", "--output", "json")
    (workload,) = json.loads(output)["workloads"]
    assert (workload["phase"], workload["outcome"], workload["kind"]) == ("Gone", "failed", "")
    assert (code, "has no workload train" in errors) == (1, True)


def test_document_on_the_platform(serve: Serve, run: Run) -> None:
    serve(clusterpolicies_v1_nvidia_com=[POLICY])
    platform = json.loads(run("--output", "json")[1])["platform"]
    assert (platform["phase"], platform["neverEnding"]) == ("NotReady", [])
    assert "notReady" in platform["findings"][0]["why"]


def test_watching_prints_json_only(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("train", "--watch")
    assert "--watch prints JSON documents only. Add: --output json" in capsys.readouterr().err


def test_one_proxy_reads_all_kinds(fake: Path) -> None:
    answers = {
        "/api/v1/namespaces/ai/pods": (200, {"items": [{"metadata": {"name": "a"}}]}),
        "/apis/nvidia.com/v1/clusterpolicies": (403, {"message": "User alice cannot list them"}),
    }
    kubectl_proxy.install(fake.parent, answers)
    with kubectl.reading_often() as read:
        assert read(POD, "ai") == [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}]
        assert read(VOLCANO_JOB, "") == []
        with pytest.raises(kubectl.Forbidden, match="User alice cannot list them"):
            read(CLUSTER_POLICY, "")


def test_reports_the_error_of_a_proxy_that_does_not_start(fake: Path) -> None:
    script(fake, "echo 'error: no configuration has been provided' >&2; exit 1")
    with pytest.raises(kubectl.KubectlFailed, match="no configuration has been provided"), kubectl.reading_often():
        pass
