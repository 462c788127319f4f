"""Pods of scheduler-plugins: how real scheduler and controller are called here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.host import paths
from simulator.kubelet.programs import HostProcess, PodContext
from simulator.operators.scheduler_plugins.programs import PROGRAMS
from tests.support.fake_kube import Context, FakeKube

CONFIG = "/etc/kubernetes/scheduler-config.yaml"
OF_THE_CHART = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "profiles": [{"schedulerName": "scheduler-plugins-scheduler"}],
}


@dataclass
class SchedulerPod(Context):
    """Its files lie in a folder, its ports are elsewhere; it has the chart's command, or arguments alone."""

    folder: Path = Path()
    words: tuple[str, ...] = ("/bin/kube-scheduler", f"--config={CONFIG}")

    def argv(self) -> list[str]:
        return list(self.words)

    def kubeconfig(self) -> str:
        return str(self.folder / "kubeconfig")

    def local_port(self, container_port: int) -> int:
        return 20_000 + container_port


def pod(folder: Path, config: Any = OF_THE_CHART, **more: Any) -> PodContext:
    text = config if isinstance(config, str) else yaml.safe_dump(config)
    return SchedulerPod(FakeKube(), files={CONFIG: text.encode()}, folder=folder, **more).as_pod_context()


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, as if a stack had needed them."""
    monkeypatch.setattr(paths, "tool", lambda name: Path("/tools") / name)


def process(image: str) -> HostProcess:
    (found,) = [each.program for each in PROGRAMS if each.image.endswith(image)]
    assert isinstance(found, HostProcess)
    return found


def test_the_scheduler_has_the_charts_configuration_and_the_pods_own_login(tmp_path: Path) -> None:
    command = process("kube-scheduler").argv(pod(tmp_path))
    flags = [word.removeprefix("--config=") for word in command if word.startswith("--config=")]
    found = yaml.safe_load(Path(flags[-1]).read_text())  # of a flag that is given twice the last counts
    assert found == {**OF_THE_CHART, "clientConnection": {"kubeconfig": f"{tmp_path}/kubeconfig"}}
    assert command[0] == "/tools/scheduler-plugins-scheduler"
    assert {"--bind-address=127.0.0.1", "--secure-port=30259"} <= set(command)
    assert process("kube-scheduler").ports(pod(tmp_path)) == {10259: 30259}


def test_other_settings_of_the_schedulers_client_are_kept(tmp_path: Path) -> None:
    process("kube-scheduler").argv(pod(tmp_path, {**OF_THE_CHART, "clientConnection": {"qps": 100}}))
    found = yaml.safe_load((tmp_path / "scheduler-config.yaml").read_text())
    assert found["clientConnection"] == {"qps": 100, "kubeconfig": f"{tmp_path}/kubeconfig"}


@pytest.mark.parametrize("config", ["", "5", "[a]", "{"])
def test_what_is_no_configuration_is_said_in_the_pods_log(config: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no configuration of a scheduler"):
        process("kube-scheduler").argv(pod(tmp_path, config))


def test_the_controller_has_the_charts_arguments_and_listens_here(tmp_path: Path) -> None:
    command = process("controller").argv(pod(tmp_path, words=("--enableLeaderElection",)))
    assert command == [
        "env",
        f"KUBECONFIG={tmp_path}/kubeconfig",
        "/tools/scheduler-plugins-controller",
        "--enableLeaderElection",
        "--metricsAddr=127.0.0.1:28080",
        "--probeAddr=127.0.0.1:28081",
    ]
    assert process("controller").ports(pod(tmp_path)) == {8080: 28080, 8081: 28081}
