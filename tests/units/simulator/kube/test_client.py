"""The client against a real API server: as whom it calls."""

from __future__ import annotations

import pytest
import yaml

from simulator.cluster.controlplane import ControlPlane
from simulator.kube.client import KubeClient

pytestmark = pytest.mark.simulator


def test_a_kubeconfig_may_say_whom_to_be(tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMULATOR_HOME", str(tmp_path_factory.mktemp("client")))
        plane = ControlPlane("client")
        plane.start()
        try:
            config = yaml.safe_load(plane.kubeconfig())
            assert "alice" not in told(config)
            config["users"][0]["user"]["as"] = "alice"
            assert told(config) == ["alice", "system:authenticated"]
        finally:
            plane.stop()


def told(config: dict[str, object]) -> list[str]:
    """Name and groups that the API server sees."""
    with KubeClient.from_kubeconfig(config) as kube:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        found = kube.raw("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", json=review)
    user = found["status"]["userInfo"]
    return [user["username"], *user["groups"]]
