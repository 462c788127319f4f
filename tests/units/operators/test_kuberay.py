"""KubeRay: what of its release a stack has, and who comes after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from components import manifests
from operators import kuberay
from tests.support.mocks import Recorder, program
from tests.support.settings import H100

CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
RELEASE: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mlbatch-system"}},
    *({**CRD, "metadata": {"name": name}, "spec": {}} for name in (*kuberay.UNUSED, "rayjobs.ray.io")),
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "operator", "namespace": "mlbatch-system"},
        "spec": {
            "template": {
                "spec": {"containers": [{"name": "operator", "image": "quay.io/kuberay/operator:v1", "args": ["--a"]}]}
            }
        },
    },
]
CHARTS = ("kueue", "node-feature-discovery", "gpu-operator", "network-operator", "volcano", "blob-csi-driver")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """A stack whose charts come from a folder, and images from a mirror."""
    charts: Path = tmp_path_factory.mktemp("charts")
    for name in CHARTS:
        (charts / name).mkdir()
        (charts / name / "Chart.yaml").touch()
    (charts / kuberay.NAME).mkdir()
    (charts / kuberay.NAME / "install.yaml").write_text(yaml.safe_dump_all(RELEASE))
    manifests.manifests.cache_clear()
    operators = {"kueue": {"enabled": True}, "kuberay": {"enabled": True}}
    place = {"charts": {"source": str(charts)}, "images": {"registry": "mirror.example.com/all"}}
    return program({"vmSku": H100, "nodeCount": 2, "cluster": {"localAccounts": True}, "operators": operators, **place})


def test_it_has_no_crd_of_what_it_does_not_run(stack: Recorder) -> None:
    assert stack.names(":CustomResourceDefinition") == ["rayjobs.ray.io"]


def test_its_pod_is_as_released_from_the_mirror_on_the_system_pool(stack: Recorder) -> None:
    spec = stack.one(":Deployment", "operator").inputs["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert (container["image"], container["args"]) == ("mirror.example.com/all/kuberay/operator:v1", ["--a"])
    assert spec["nodeSelector"] == {"kubernetes.azure.com/mode": "system"}
    assert spec["priorityClassName"] == "system-cluster-critical"
    assert container["resources"]["limits"] == {"cpu": "500m", "memory": "1000Mi"}


def test_kueue_queues_its_jobs_and_comes_after_it_since_namespaces_of_teams_go_before_both(stack: Recorder) -> None:
    kueue = stack.one(":Release", "kueue")
    assert "CustomResourceDefinition rayjobs.ray.io" in " ".join(kueue.dependencies)
    for framework in ("ray.io/rayjob", "ray.io/raycluster"):
        assert framework in str(kueue.inputs["values"])
