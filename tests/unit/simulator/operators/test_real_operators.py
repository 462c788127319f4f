from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import operators
from config.data.scheduling import WRAPPER_CONFIG
from config.data.versions import INSTALL, Kustomization, versions
from k8s.objects import Object
from operators import kuberay, kueue, training_operator
from simulator import operators as simulated
from simulator.charts import make_values
from simulator.host import paths
from simulator.kubelet.programs import HostProcess, PodContext
from simulator.operators import REAL
from simulator.sandbox import sandbox
from simulator.sandbox.images import image_named
from tests.support.fake_kube import FakeKube, node
from tests.unit.simulator.operators.host_pod import HostPod, config_of, process

PINS = versions().manifests
PROGRAMS = tuple(program for operator in REAL for program in operator.programs)

# -- releases ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pin", PINS.values(), ids=PINS)
def test_manifests_come_from_the_pinned_module(pin: Kustomization) -> None:
    folder = Path(simulated.__file__).parent / pin.name.replace("-", "_")
    manager, made = yaml.safe_load((folder / "tools.yaml").read_text())
    assert f"{pin.module} {pin.version} {pin.sum}" in (folder / "go.sum").read_text().splitlines()
    assert f"v{manager['version']}" == f"v{made['version']}" == pin.version
    found = made["manifests"]
    assert (found["package"], found["folder"]) == (pin.module, pin.folder)
    assert (found["namespace"], found.get("images", [])) == (pin.namespace, list(pin.images))
    assert operators.find()[pin.name].namespace == pin.namespace


@pytest.mark.parametrize("name", ["appwrapper", "training-operator"])
def test_a_manager_in_a_sandbox_can_reach_the_kubernetes_api(name: str) -> None:
    image = image_named(name)
    assert list(image.tools) == ["/manager"]
    assert image.kubernetes_api


def namespaces(objects: dict[tuple[str, str], Object], default: str) -> Iterator[str]:
    for each in objects.values():
        yield each["metadata"].get("namespace", default)
        yield from (subject["namespace"] for subject in each.get("subjects", []))
        for hook in each.get("webhooks", []):
            yield hook["clientConfig"]["service"]["namespace"]


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("name", "deployment", "image", "crds"),
    [
        (
            "appwrapper",
            "appwrapper-controller-manager",
            "quay.io/ibm/appwrapper:{version}",
            {"appwrappers.workload.codeflare.dev"},
        ),
        (
            "training-operator",
            "training-operator",
            "ghcr.io/kubeflow/training-v1/training-operator:",
            {*training_operator.OTHERS, f"{training_operator.KIND}s.kubeflow.org"},
        ),
        (
            "kuberay",
            "kuberay-operator",
            "quay.io/kuberay/operator:{version}",
            {*kuberay.UNUSED, "rayclusters.ray.io", "rayjobs.ray.io", "rayservices.ray.io"},
        ),
    ],
)
def test_a_release_has_the_objects_that_the_program_expects(
    name: str, deployment: str, image: str, crds: set[str]
) -> None:
    text = (make_values.CHARTS / name / INSTALL).read_text()
    objects = {(each["kind"], each["metadata"]["name"]): each for each in yaml.load_all(text, yaml.CSafeLoader)}
    assert {found for kind, found in objects if kind == "CustomResourceDefinition"} == crds
    (manager,) = objects["Deployment", deployment]["spec"]["template"]["spec"]["containers"]
    assert manager["image"].startswith(image.format(version=PINS[name].version))
    assert manager["command"] == ["/manager"]
    assert set(namespaces(objects, PINS[name].namespace)) == {PINS[name].namespace}
    if name == "appwrapper":
        assert ("ConfigMap", WRAPPER_CONFIG) in objects


# -- programs ----------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "tool", lambda name: Path("/tools") / name)


def pod(folder: Path, *words: str, config: Any = None) -> PodContext:
    """`config` is the content of the file in `--config`, an object or text."""
    text = config if isinstance(config, str) else yaml.safe_dump(config)
    files = {word.removeprefix("--config="): text.encode() for word in words if word.startswith("--config=")}
    metadata = {"name": "manager", "namespace": "mlbatch-system", "uid": "u-1"}
    return HostPod(FakeKube(), files=files, pod={"metadata": metadata}, folder=folder, words=words).as_pod_context()


KUEUE_CONFIG = yaml.safe_load(kueue.values()["managerConfig"]["controllerManagerConfigYaml"])
KUEUE = "/manager", "--config=/controller_manager_config.yaml", "--zap-log-level=2"


def test_kueue_has_the_charts_configuration_with_other_addresses(tmp_path: Path) -> None:
    manager, ctx = process(PROGRAMS, "kueue/kueue"), pod(tmp_path, *KUEUE, config=KUEUE_CONFIG)
    command = manager.argv(ctx)
    found = config_of(command)
    places = {"namespace", "health", "webhook", "visibilityServer", "leaderElection", "metrics"}
    assert {key: value for key, value in found.items() if key not in places} == {
        key: value for key, value in KUEUE_CONFIG.items() if key not in places
    }
    certificates = f"{tmp_path}/tmp/k8s-webhook-server/serving-certs"
    assert found["webhook"] == {"host": "127.0.0.1", "port": 29443, "certDir": certificates}
    assert found["metrics"] == {"bindAddress": "127.0.0.1:28443", "enableClusterQueueResources": True}
    assert found["visibilityServer"] == {"bindAddress": "127.0.0.1", "bindPort": 28082}
    assert found["leaderElection"] == {**KUEUE_CONFIG["leaderElection"], "resourceNamespace": "mlbatch-system"}
    assert manager.ports(ctx) == {8081: 28081, 8443: 28443, 9443: 29443, 8082: 28082}
    assert command[:2] == ["env", "-C"]
    assert (Path(command[2]) / "visibility").readlink() == tmp_path / "visibility"


def test_kueue_listens_on_the_ports_of_its_configuration(tmp_path: Path) -> None:
    manager, ctx = process(PROGRAMS, "kueue/kueue"), pod(tmp_path, *KUEUE, config={"webhook": {"port": 9444}})
    assert manager.ports(ctx)[9444] == 29444
    assert config_of(manager.argv(ctx))["webhook"]["port"] == 29444


SCHEDULER_CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "clientConnection": {"qps": 100},
    "profiles": [{"schedulerName": "scheduler-plugins-scheduler"}],
}
SCHEDULER = "/bin/kube-scheduler", "--config=/etc/kubernetes/scheduler-config.yaml"


def test_the_scheduler_has_the_charts_configuration_and_the_pods_kubeconfig(tmp_path: Path) -> None:
    scheduler, ctx = process(PROGRAMS, "kube-scheduler"), pod(tmp_path, *SCHEDULER, config=SCHEDULER_CONFIG)
    command = scheduler.argv(ctx)
    login = {"clientConnection": {"qps": 100, "kubeconfig": f"{tmp_path}/kubeconfig"}}
    assert config_of(command) == SCHEDULER_CONFIG | login
    assert command[0] == "/tools/scheduler-plugins-scheduler"
    assert {"--bind-address=127.0.0.1", "--secure-port=30259"} <= set(command)
    assert scheduler.ports(ctx) == {10259: 30259}


@pytest.mark.parametrize("config", ["", "5", "[a]", "{"])
@pytest.mark.parametrize(
    ("image", "words", "program"),
    [("kueue/kueue", KUEUE, "Kueue"), ("kube-scheduler", SCHEDULER, "a scheduler")],
    ids=["kueue", "scheduler"],
)
def test_an_invalid_configuration_is_an_error_in_the_pods_log(
    image: str, words: tuple[str, ...], program: str, config: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=f"is not a configuration of {program}"):
        process(PROGRAMS, image).argv(pod(tmp_path, *words, config=config))


@pytest.mark.parametrize(
    ("image", "words", "command", "ports"),
    [
        (
            "scheduler-plugins/controller",
            ["--enableLeaderElection"],
            "/tools/scheduler-plugins-controller --enableLeaderElection --metricsAddr=127.0.0.1:28080"
            " --probeAddr=127.0.0.1:28081",
            {8080: 28080, 8081: 28081},
        ),
        (
            "kuberay/operator",
            ["/manager", "--feature-gates=One=true"],
            "/tools/kuberay-operator --feature-gates=One=true --metrics-addr=127.0.0.1:28080"
            " --health-probe-bind-address=127.0.0.1:28082 --leader-election-namespace=mlbatch-system"
            " --use-kubernetes-proxy",
            {8080: 28080, 8082: 28082},
        ),
    ],
    ids=["scheduler-plugins", "kuberay"],
)
def test_a_controller_has_the_releases_arguments_and_local_addresses(
    image: str, words: list[str], command: str, ports: dict[int, int], tmp_path: Path
) -> None:
    program, ctx = process(PROGRAMS, image), pod(tmp_path, *words)
    assert program.argv(ctx) == ["env", f"KUBECONFIG={tmp_path}/kubeconfig", *command.split()]
    assert program.ports(ctx) == ports


@pytest.mark.parametrize(
    ("config", "enabled"),
    [
        ("", "kernel,pci,system"),
        ("core: {featureSources: [all, -kernel]}", "pci,system"),
        ("core: {featureSources: [cpu, pci]}", "pci"),
        ("core: {featureSources: null}", ""),
        *((broken, "kernel,pci,system") for broken in ("core: 5", "core:", "[a]", "{", "core: {featureSources: 5}")),
    ],
)
def test_an_nfd_worker_uses_only_simulated_sources(
    config: str, enabled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a sandbox, all sources except the kernel are the node's."""
    monkeypatch.setattr(sandbox, "available", lambda: "no bubblewrap")
    worker = next(each.program for each in PROGRAMS if each.command == "nfd-worker")
    assert isinstance(worker, HostProcess)
    made = HostPod(
        FakeKube(),
        node("t4", "Standard_NC4as_T4_v3"),
        {"volumeMounts": [{"name": "sys", "mountPath": "/host-sys"}]},
        {"/etc/kubernetes/node-feature-discovery/nfd-worker.conf": config.encode()},
        folder=tmp_path,
        words=("nfd-worker", "-port=8081"),
    ).as_pod_context()
    command = worker.argv(made)
    assert command[:3] == ["env", "-C", f"{tmp_path}/host"]
    assert (tmp_path / "host/host-sys").readlink() == tmp_path / "host-sys"
    assert command[-1] == f"-feature-sources={enabled}"
    assert worker.ports(made) == {8081: 28081}


def test_the_hook_that_deletes_nfds_labels_has_no_ports(tmp_path: Path) -> None:
    master = next(each.program for each in PROGRAMS if each.command == "nfd-master")
    assert isinstance(master, HostProcess)
    ctx = pod(tmp_path, "nfd-master", "-prune")
    assert master.ports(ctx) == {}
    assert {"-prune", f"-kubeconfig={tmp_path}/kubeconfig"} <= set(master.argv(ctx))
