"""Device plugins keep the configuration of their start."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from k8s.objects import Object
from simulator.kube.client import KubeClient
from simulator.kubelet.devices import DeviceManager
from simulator.kubelet.errors import VolumeNotReady
from simulator.kubelet.nodes import NodeKeeper

H100 = {"node.kubernetes.io/instance-type": "Standard_ND96isr_H100_v5"}
NODE: Object = {"metadata": {"name": "node", "labels": H100}, "status": {"allocatable": {}, "capacity": {}}}


class Plugin:
    """A plugin's pod with mounted files that may change. `reads` is one sync."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, bytes] = {"a": b"1"}
        self.pod: Object = {
            "metadata": {"name": "plugin", "namespace": "ns", "uid": "first"},
            "spec": {"nodeName": "node", "containers": [{"name": "main"}]},
            "status": {"phase": "Running", "containerStatuses": [{"restartCount": 0}]},
        }
        self._path, self._seen = "a", b""
        kube = cast(KubeClient, SimpleNamespace(patch=lambda *_, **__: {}))
        self._keeper = NodeKeeper(kube, DeviceManager(list), self._offer, folder)

    def reads(self, path: str = "a") -> bytes | None:
        self._path = path
        self._keeper.sync([NODE], [self.pod], lambda *_: cast(Any, SimpleNamespace(file=self._file)))
        return self._seen

    def _file(self, path: str) -> bytes:
        if path not in self.files:
            raise VolumeNotReady("its config map is not there yet")
        return self.files[path]

    def _offer(self, _node: Object, pods: Any, _hardware: Any, configs: Any) -> dict[str, int]:
        self._seen = configs(pods[0], self._path)
        return {}


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def test_a_running_plugin_ignores_a_changed_config_map(plugin: Plugin) -> None:
    assert plugin.reads() == b"1"
    plugin.files["a"] = b"2"
    assert plugin.reads() == b"1"


def test_a_restarted_container_and_a_new_pod_read_the_change(plugin: Plugin) -> None:
    plugin.reads()
    plugin.files["a"] = b"2"
    plugin.pod["status"]["containerStatuses"][0]["restartCount"] = 1
    assert plugin.reads() == b"2"
    plugin.files["a"] = b"3"
    plugin.pod["metadata"]["uid"] = "second"
    assert plugin.reads() == b"3"


def test_reads_a_newly_chosen_file_and_the_first_one_again(plugin: Plugin) -> None:
    plugin.files["b"] = b"5"
    plugin.reads()
    plugin.files["a"] = b"2"
    assert plugin.reads("b") == b"5"
    assert plugin.reads("a") == b"2"


def test_reads_a_missing_file_once_it_exists(plugin: Plugin) -> None:
    assert plugin.reads("b") is None
    plugin.files["b"] = b"5"
    assert plugin.reads("b") == b"5"
