"""NFD: features and labels of each kind of node, and what worker, master, garbage collector and hook do about them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from operators.nfd import component as program
from simulator.kubelet.programs import PodContext
from simulator.operators.nfd import master, worker
from simulator.operators.nfd.features import ConfigError, WorkerConfig, discover, parse_config
from simulator.operators.nfd.labels import MasterConfig, node_patch, parse_master_config, wanted
from simulator.world.nodes import hardware_of, os_release
from tests.support.fake_kube import Context, FakeKube, node

H100, T4, SYSTEM = "Standard_ND96isr_H100_v5", "Standard_NC4as_T4_v3", "Standard_D4ads_v5"
INFINIBAND = "feature.node.kubernetes.io/pci-15b3.present"
GPU = "feature.node.kubernetes.io/pci-10de.present"
PROGRAM_CONFIG = yaml.safe_dump(program.values()["worker"]["config"])
RULES = [program.gpu_rule(), program.infiniband_rule()]


@pytest.fixture(autouse=True)
def no_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))


def labels_of(sku: str, config: str = PROGRAM_CONFIG) -> dict[str, str]:
    spec = discover(hardware_of(node("n", sku)), parse_config(config))
    return wanted([spec], RULES, MasterConfig()).labels


def test_with_the_programs_settings_only_infiniband_nodes_get_the_infiniband_label() -> None:
    assert labels_of(H100)[GPU] == labels_of(H100)[INFINIBAND] == "true"
    assert labels_of(T4)[GPU] == "true"
    assert INFINIBAND not in labels_of(T4)
    assert not {GPU, INFINIBAND} & labels_of(SYSTEM).keys()


def test_with_ethernet_on_the_whitelist_every_node_with_accelerated_networking_gets_it() -> None:
    config = "sources: {pci: {deviceClassWhitelist: ['02'], deviceLabelFields: [vendor]}}"
    assert labels_of(T4, config)[INFINIBAND] == "true"


def test_default_label_fields_are_class_and_vendor() -> None:
    labels = discover(hardware_of(node("n", T4)), WorkerConfig())["labels"]
    assert labels["feature.node.kubernetes.io/pci-0302_10de.present"] == "true"


def test_kernel_and_system_labels_come_from_the_nodes_image() -> None:
    labels = labels_of(H100)
    assert labels["feature.node.kubernetes.io/kernel-version.full"] == "6.8.0-1030-azure"
    assert labels["feature.node.kubernetes.io/system-os_release.VERSION_ID"] == "24.04"
    assert os_release("Microsoft Azure Linux 3.0", ("", "")) == ("azurelinux", "3.0")


def test_sources_can_be_switched_off() -> None:
    config = parse_config("core: {labelSources: [all, -kernel], featureSources: [pci, kernel]}")
    spec = discover(hardware_of(node("n", T4)), config)
    assert not any("kernel" in name or "system" in name for name in spec["labels"])
    assert "kernel.version" in spec["features"]["attributes"]
    with pytest.raises(ConfigError, match="nfd-worker.conf"):
        parse_config("[")


def test_label_namespaces() -> None:
    spec = {"features": {}, "labels": {"x.kubernetes.io/a": "1", "nvidia.com/b": "1", "denied.io/c": "1", "plain": "1"}}
    config = MasterConfig(denied_namespaces=["denied.io"])
    result = wanted([spec], [], config)
    assert result.labels == {"nvidia.com/b": "1", "feature.node.kubernetes.io/plain": "1"}
    assert all("extraLabelNs" in error for error in result.errors)
    allowed = parse_master_config("extraLabelNs: [x.kubernetes.io, denied.io]", {"-deny-label-ns": "denied.io"})
    assert len(wanted([spec], [], allowed).labels) == 4


def test_a_rule_may_take_a_value_from_a_feature() -> None:
    spec = discover(hardware_of(node("n", T4)), WorkerConfig())
    labels = wanted([spec], [{"name": "r", "labels": {"k": "@kernel.version.major"}}], MasterConfig()).labels
    assert labels["feature.node.kubernetes.io/k"] == "6"


def test_labels_that_nfd_gave_are_taken_back_and_others_stay() -> None:
    config = MasterConfig()
    labelled = node("n", T4, labels={"mine": "1"})
    spec = {"features": {}, "labels": {"a": "1"}}
    patch = node_patch(labelled, wanted([spec], [], config), config)
    labelled["metadata"]["labels"] |= patch["metadata"]["labels"]
    labelled["metadata"]["annotations"] |= patch["metadata"]["annotations"]
    assert node_patch(labelled, wanted([spec], [], config), config) == {}
    taken = node_patch(labelled, wanted([], [], config), config)
    assert taken["metadata"]["labels"] == {"feature.node.kubernetes.io/a": None}


def run_once(program: Callable[[PodContext, threading.Event], None], ctx: Context) -> None:
    """The first round of a controller: it is told to stop long before the second."""
    stop = threading.Event()
    timer = threading.Timer(0.2, stop.set)
    timer.start()
    program(ctx.as_pod_context(), stop)
    timer.join()


def test_worker_and_master_label_the_node_and_the_hook_takes_it_back() -> None:
    kube = FakeKube(node("n", H100, labels={"mine": "1"}))
    for index, rule in enumerate(RULES):
        kube.create({"kind": "NodeFeatureRule", "metadata": {"name": f"r{index}"}, "spec": {"rules": [rule]}})
    worker_ctx = Context(kube, node("n", H100), files={worker.CONFIG_FILE: PROGRAM_CONFIG.encode()})
    run_once(worker.run, worker_ctx)
    feature = kube.find("", "NodeFeature", "n", "nvidia-operator")
    assert feature is not None
    assert feature["metadata"]["ownerReferences"][0]["kind"] == "Pod"
    run_once(master.run_master, Context(kube))
    labels = kube.objects[("Node", "", "n")]["metadata"]["labels"]
    assert labels[INFINIBAND] == "true"
    written = len(kube.writes)
    run_once(master.run_master, Context(kube))
    assert len(kube.writes) == written, "a second round has nothing to do"
    master.prune(Context(kube).as_pod_context())
    left = kube.objects[("Node", "", "n")]["metadata"]
    assert not [name for name in (*left["labels"], *left["annotations"]) if "feature" in name or "nfd" in name]
    assert left["labels"]["mine"] == "1"


def test_features_of_a_node_that_is_gone_are_collected() -> None:
    kube = FakeKube(node("n", T4))
    for name in ("n", "gone"):
        metadata = {"name": name, "namespace": "x", "labels": {worker.NODE_NAME_LABEL: name}}
        kube.create({"kind": "NodeFeature", "metadata": metadata, "spec": {}})
    run_once(master.run_gc, Context(kube))
    assert [key[2] for key in kube.objects if key[0] == "NodeFeature"] == ["n"]
