"""Kueue's pod: its configuration, as upstream's manager is given it here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from operators import kueue as program
from simulator.host import paths
from simulator.kubelet.programs import HostProcess, PodContext
from simulator.operators.kueue.programs import PROGRAMS
from tests.support.fake_kube import Context, FakeKube

OWN = yaml.safe_load(program.values()["managerConfig"]["controllerManagerConfigYaml"])
CONFIG = "/controller_manager_config.yaml"
CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"


@dataclass
class ManagerPod(Context):
    """The pod of Kueue's chart: its files lie in a folder, its ports are elsewhere."""

    folder: Path = Path()

    def argv(self) -> list[str]:
        return ["/manager", f"--config={CONFIG}", "--zap-log-level=2"]

    def host_path(self, path: str) -> str:
        return str(self.folder / path.lstrip("/"))

    def kubeconfig(self) -> str:
        return str(self.folder / "kubeconfig")

    def local_port(self, container_port: int) -> int:
        return 20_000 + container_port


def pod(folder: Path, config: Any = OWN) -> PodContext:
    made = {"metadata": {"name": "kueue", "namespace": "mlbatch-system", "uid": "u-1"}}
    text = config if isinstance(config, str) else yaml.safe_dump(config)
    return ManagerPod(FakeKube(), files={CONFIG: text.encode()}, pod=made, folder=folder).as_pod_context()


@pytest.fixture(autouse=True)
def _manager(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, as if a stack had needed it."""
    monkeypatch.setattr(paths, "tool", lambda name: Path("/tools") / name)


def process() -> HostProcess:
    found = PROGRAMS[0].program
    assert isinstance(found, HostProcess)
    return found


def given(ctx: PodContext) -> dict[str, Any]:
    """The configuration that the manager is called with: of a flag that is given twice the last counts."""
    flags = [word.removeprefix("--config=") for word in process().argv(ctx) if word.startswith("--config=")]
    found: dict[str, Any] = yaml.safe_load(Path(flags[-1]).read_text())
    return found


def test_the_manager_has_the_charts_configuration_but_for_where_it_listens(tmp_path: Path) -> None:
    found = given(pod(tmp_path))
    places = {"namespace", "health", "webhook", "visibilityServer", "leaderElection", "metrics"}
    assert {key: value for key, value in found.items() if key not in places} == {
        key: value for key, value in OWN.items() if key not in places
    }
    assert found["webhook"] == {"host": "127.0.0.1", "port": 29443, "certDir": f"{tmp_path}{CERTIFICATES}"}
    assert found["metrics"] == {"bindAddress": "127.0.0.1:28443", "enableClusterQueueResources": True}
    assert found["visibilityServer"] == {"bindAddress": "127.0.0.1", "bindPort": 28082}
    assert found["leaderElection"] == {**OWN["leaderElection"], "resourceNamespace": "mlbatch-system"}


def test_the_pod_serves_at_the_ports_of_its_configuration(tmp_path: Path) -> None:
    assert process().ports(pod(tmp_path)) == {8081: 28081, 8443: 28443, 9443: 29443, 8082: 28082}
    other = {**OWN, "webhook": {"port": 9444}}
    assert process().ports(pod(tmp_path, other))[9444] == 29444
    assert given(pod(tmp_path, other))["webhook"]["port"] == 29444


def test_the_visibility_apis_certificate_is_in_the_pods_own_volume(tmp_path: Path) -> None:
    command = process().argv(pod(tmp_path))
    assert command[:2] == ["env", "-C"]
    assert (Path(command[2]) / "visibility").readlink() == tmp_path / "visibility"


@pytest.mark.parametrize("config", ["", "5", "[a]", "{"])
def test_what_is_no_configuration_is_said_in_the_pods_log(config: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no configuration of Kueue"):
        process().argv(pod(tmp_path, config))
