"""NFD: the real one, called as for pods of its chart, on the files of simulated nodes and a real API server."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from k8s.objects import Object
from operators import nfd as program
from simulator.charts import make_schema
from simulator.cluster.controlplane import ControlPlane
from simulator.host import ports
from simulator.host.processes import marked_environment
from simulator.kube.client import KubeClient
from simulator.kubelet.programs import HostProcess, PodContext
from simulator.operators.gpu_operator import gfd
from simulator.operators.nfd.programs import PROGRAMS, sources
from simulator.sandbox import machine, sandbox
from simulator.world.nodes import hardware_of
from tests.support.fake_kube import Context, node
from tests.support.waiting import eventually

H100, T4, SYSTEM = "Standard_ND96isr_H100_v5", "Standard_NC4as_T4_v3", "Standard_D4ads_v5"
FEATURES = "feature.node.kubernetes.io"
GPU, INFINIBAND = f"{FEATURES}/pci-10de.present", f"{FEATURES}/pci-15b3.present"
NAMESPACE = "default"
CONTROLLERS = "of-the-controllers"
VALUES = program.values()
BY_RULE, EXTRA = f"{FEATURES}/by-rule", "extra.kubernetes.io/x"
KERNEL, OS = f"{FEATURES}/kernel-version.full", f"{FEATURES}/system-os_release.VERSION_ID"


@pytest.mark.parametrize(
    ("config", "enabled"),
    [
        ("", ["kernel", "pci", "system"]),
        ("core: {featureSources: [all, -kernel]}", ["pci", "system"]),
        ("core: {featureSources: [cpu, pci]}", ["pci"]),
        ("core: {featureSources: null}", []),
        *(
            (broken, ["kernel", "pci", "system"])
            for broken in ("core: 5", "core:", "[a]", "{", "core: {featureSources: 5}")
        ),
    ],
)
def test_a_worker_looks_at_what_is_simulated_of_the_sources_that_are_enabled(config: str, enabled: list[str]) -> None:
    assert sources(config.encode()) == enabled


@dataclass
class NfdPod(Context):
    """A pod of NFD's chart: its configuration and its node's files."""

    folder: Path = Path()
    kubeconfig_: str = ""
    words: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kube(self) -> KubeClient:
        return cast(KubeClient, self.kube_)

    def argv(self) -> list[str]:
        return list(self.words)

    def file(self, path: str) -> bytes | None:
        return Path(self.host_path(path)).read_bytes() if self.config else None

    def host_path(self, path: str) -> str:
        if path.startswith("/host-"):
            return str(self.folder / path.removeprefix("/host-"))
        file = self.folder / Path(path).name
        file.write_text(yaml.safe_dump(dict(self.config)))
        return str(file)

    def kubeconfig(self) -> str:
        file = self.folder / "kubeconfig"
        file.write_text(self.kubeconfig_)
        return str(file)

    def local_port(self, container_port: int) -> int:
        assert container_port == 8080
        return ports.free(set())


@dataclass
class NfdCluster:
    """A control plane with NFD's CRDs."""

    plane: ControlPlane
    kube: KubeClient
    folder: Path

    def has_node(self, name: str, sku: str) -> Object:
        made = node(name, sku, labels={"mine": "1"})
        self.kube.create(made)
        return made

    def has_rule(self, name: str, rule: Mapping[str, Any]) -> None:
        api = {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeatureRule"}
        self.kube.create({**api, "metadata": {"name": name}, "spec": {"rules": [rule]}})

    def start(self, *words: str, of: Object | None = None, **config: Any) -> subprocess.Popen[bytes]:
        """Starts a container of NFD's with these words as its command."""
        name = of["metadata"]["name"] if of else words[0]
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        if of:
            machine.write(folder, hardware_of(of))
        mounts = [{"name": path, "mountPath": f"/host-{path}"} for path in ("sys", "etc/os-release")]
        pod = {"metadata": {"name": "pod", "namespace": NAMESPACE, "uid": "u-1"}}
        ctx = NfdPod(cast(Any, self.kube), of or {}, {"volumeMounts": mounts}, pod=pod, folder=folder, words=words)
        ctx.kubeconfig_, ctx.config = self.plane.kubeconfig(), config
        process = next(each.program for each in PROGRAMS if each.command == words[0])
        assert isinstance(process, HostProcess)
        environment = marked_environment({"NODE_NAME": name if of else CONTROLLERS})
        log = (folder / "log").open("wb")
        with log:
            argv = process.argv(cast(PodContext, ctx))
            return subprocess.Popen(argv, env=environment, stdout=log, stderr=log)

    def look(self, of: Object, **config: Any) -> None:
        """One look of the node's worker."""
        worker = self.start("nfd-worker", "-oneshot", "-owner-refs=", of=of, **(config or VALUES["worker"]["config"]))
        name = of["metadata"]["name"]
        assert worker.wait(60) == 0, (self.folder / name / "log").read_text()

    def labels(self, name: str) -> dict[str, str]:
        return dict(self.kube.get("v1", "Node", name)["metadata"]["labels"])

    def has_labels(self, name: str, wanted: set[str]) -> bool:
        return wanted <= self.labels(name).keys()

    def features(self) -> set[str]:
        return {each["metadata"]["name"] for each in self.kube.list(gfd.API, "NodeFeature")}


def ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(30)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NfdCluster]:
    home = tmp_path_factory.mktemp("nfd")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMULATOR_HOME", str(home))
        plane = ControlPlane("nfd")
        plane.start()
        kube = plane.client()
        try:
            _install_crds(kube)
            (home / "pods").mkdir()
            kube.create(node(CONTROLLERS, SYSTEM))
            yield NfdCluster(plane, kube, home / "pods")
        finally:
            kube.close()
            plane.stop()


def _install_crds(kube: KubeClient) -> None:
    """As Helm does: it waits until they are served."""
    text = (make_schema.CHARTS / program.NAME / "crds" / "nfd-api-crds.yaml").read_text()
    names = [kube.create(crd)["metadata"]["name"] for crd in yaml.safe_load_all(text)]
    for name in names:
        eventually(partial(_is_served, kube, name), f"{name} is served")


def _is_served(kube: KubeClient, name: str) -> bool:
    crd = kube.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
    conditions = crd.get("status", {}).get("conditions", [])
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions or ())


@pytest.fixture
def master(cluster: NfdCluster) -> Iterator[None]:
    """With the program's configuration, and a namespace of labels that NFD denies unless told."""
    namespaces = [*VALUES["master"]["config"]["extraLabelNs"], "extra.kubernetes.io"]
    process = cluster.start("nfd-master", extraLabelNs=namespaces)
    yield
    ended(process)


@pytest.mark.simulator
@pytest.mark.usefixtures("master")
def test_nodes_are_labelled_by_what_their_workers_find_and_by_rules(cluster: NfdCluster) -> None:
    cluster.has_rule("gpu", program.gpu_rule())
    cluster.has_rule("infiniband", program.infiniband_rule() | {"labels": {BY_RULE: "true"}})
    cluster.has_rule("more", {"name": "m", "labels": {EXTRA: "1", "denied.kubernetes.io/x": "1"}})
    nodes = {name: cluster.has_node(name, sku) for name, sku in (("h100", H100), ("t4", T4), ("system", SYSTEM))}
    cluster.has_node("without-a-worker", H100)
    for each in nodes.values():
        cluster.look(each)
    for name in nodes:
        eventually(partial(cluster.has_labels, name, {EXTRA, OS}), f"{name} is labelled", 60)
    found = {name: cluster.labels(name) for name in (*nodes, "without-a-worker")}
    assert {name for name, labels in found.items() if GPU in labels} == {"h100", "t4"}
    assert {name for name, labels in found.items() if INFINIBAND in labels} == {"h100"}
    assert {name for name, labels in found.items() if BY_RULE in labels} == {"h100"}
    assert not [name for name in found["without-a-worker"] if FEATURES in name]
    assert not [name for labels in found.values() for name in labels if name.startswith("denied")]
    assert found["t4"][OS] == "24.04"
    if sandbox.available() is None:
        assert found["t4"][KERNEL] == "6.8.0-1030-azure"

    discovery = NfdPod(cast(Any, cluster.kube), nodes["t4"], pod=_pod(cluster)).as_pod_context()
    gfd.publish(discovery, gfd.node_feature(discovery))
    eventually(lambda: cluster.labels("t4").get("nvidia.com/gpu.count") == "1", "GFD's labels are given", 30)

    cluster.kube.delete(gfd.API, "NodeFeatureRule", "more")
    eventually(lambda: EXTRA not in cluster.labels("h100"), "labels of a rule that is gone are taken back", 30)
    assert cluster.labels("h100")[GPU] == "true"


def _pod(cluster: NfdCluster) -> Object:
    """Owners that there are not would take the object with them."""
    container = {"name": "c", "image": "registry.invalid/gfd"}
    metadata = {"name": "gfd", "namespace": NAMESPACE}
    return cluster.kube.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "t4", "containers": [container]}}
    )


@pytest.mark.simulator
@pytest.mark.usefixtures("master")
def test_with_ethernet_on_the_whitelist_every_node_with_accelerated_networking_gets_its_label(
    cluster: NfdCluster,
) -> None:
    pci = {"deviceClassWhitelist": ["02"], "deviceLabelFields": ["vendor"]}
    cluster.look(cluster.has_node("ethernet", T4), sources={"pci": pci})
    eventually(lambda: INFINIBAND in cluster.labels("ethernet"), "the Ethernet function is labelled", 60)


@pytest.mark.simulator
def test_where_no_sandbox_can_be_had_all_but_the_kernel_is_the_nodes(
    cluster: NfdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "available", lambda: "no bubblewrap")
    cluster.look(cluster.has_node("bare", T4))
    features = cluster.kube.get(gfd.API, "NodeFeature", "bare", NAMESPACE)["spec"]["features"]
    assert features["attributes"]["kernel.version"]["elements"]["full"] == platform.release()
    assert features["attributes"]["system.osrelease"]["elements"]["VERSION_ID"] == "24.04"
    assert len(features["instances"]["pci.device"]["elements"]) == len(hardware_of(node("bare", T4)).pci)


@pytest.mark.simulator
def test_features_of_a_node_that_goes_are_collected(cluster: NfdCluster) -> None:
    cluster.look(cluster.has_node("going", T4))
    collector = cluster.start("nfd-gc", "-gc-interval=1h")
    cluster.look(cluster.has_node("staying", T4))
    eventually(lambda: "node informer cache synced" in (cluster.folder / "nfd-gc" / "log").read_text(), "gc runs", 30)
    cluster.kube.delete("v1", "Node", "going")
    eventually(lambda: "going" not in cluster.features(), "the features are collected", 30)
    ended(collector)
    assert "staying" in cluster.features()


@pytest.mark.simulator
def test_the_charts_hook_takes_back_what_nfd_gave_and_nothing_else(cluster: NfdCluster) -> None:
    given = {f"{FEATURES}/given": "1", "mine": "1"}
    made = node("pruned", T4, labels=given)
    made["metadata"]["annotations"] = {"nfd.node.kubernetes.io/feature-labels": "given"}
    cluster.kube.create(made)
    hook = cluster.start("nfd-master", "-prune")
    assert hook.wait(60) == 0, (cluster.folder / "nfd-master" / "log").read_text()
    left = cluster.kube.get("v1", "Node", "pruned")["metadata"]
    assert f"{FEATURES}/given" not in left["labels"]
    assert left["labels"]["mine"] == "1"
    assert not [name for name in left.get("annotations", {}) if name.startswith("nfd.")]
