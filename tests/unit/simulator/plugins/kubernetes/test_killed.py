from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import grpc
import pytest
import yaml
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from simulator.host import paths
from simulator.kube.client import KubeClient
from simulator.plugins.kubernetes import recovery
from simulator.plugins.kubernetes.release import records
from simulator.plugins.kubernetes.release.options import DEFAULTS
from simulator.plugins.marshal import Properties, encode
from tests.support.plugin_engine import Failed, KubernetesPlugin, urn
from tests.support.plugin_stack import PLUGINS
from tests.support.waiting import eventually
from tests.unit.simulator.plugins.kubernetes.conftest import wait_for_record

pytestmark = pytest.mark.simulator

RELEASE = "kubernetes:helm.sh/v3:Release"


@pytest.mark.parametrize("stage", ["install", "upgrade"])
def test_recovers_a_release_of_a_killed_helm(
    stage: str, plugin: KubernetesPlugin, release: Properties, kube: KubeClient, namespace: str, kubeconfig: str
) -> None:
    made = plugin.create(RELEASE, "rel", release) if stage == "upgrade" else None
    with helm(stage, release, kubeconfig, kube):
        pass
    left = records.latest(kube, namespace, "rel")
    assert left is not None
    assert left.status == f"pending-{stage}"

    if made is None:
        with pytest.raises(Failed, match="cannot re-use a name that is still in use"):
            plugin.create(RELEASE, "rel", release)
    else:
        with pytest.raises(Failed, match=re.escape("another operation (install/upgrade/rollback) is in progress")):
            plugin.update(made, release | {"values": {"size": 6}})

    assert len(recovery.release_leftovers(kubeconfig)) == 1
    assert recovery.release_leftovers(kubeconfig) == []
    again = plugin.create(RELEASE, "rel", release) if made is None else plugin.update(made, release)
    assert again.state["status"]["status"] == "deployed"


def test_deletes_objects_of_pulumi_that_the_state_lacks(
    plugin: KubernetesPlugin, kube: KubeClient, namespace: str, kubeconfig: str
) -> None:
    def config_map(name: str) -> Properties:
        metadata = {"name": name, "namespace": namespace}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}

    for name in ("known", "lost", "updated"):
        made = plugin.create("kubernetes:core/v1:ConfigMap", name, config_map(name))
    plugin.update(made, config_map("updated") | {"data": {"a": "2"}})
    kube.create(config_map("theirs"))
    messages = recovery.delete_forgotten(kubeconfig, [namespace], {(namespace, "ConfigMap known")})
    assert sorted(messages) == [
        f"deleted ConfigMap {namespace}/{name}: a killed update had created it" for name in ("lost", "updated")
    ]
    left = {found["metadata"]["name"] for found in kube.list("v1", "ConfigMap", namespace)}
    assert left & {"known", "lost", "updated", "theirs"} == {"known", "theirs"}


def test_ignores_a_running_helm(release: Properties, kube: KubeClient, namespace: str, kubeconfig: str) -> None:
    with helm("install", release, kubeconfig, kube):
        assert recovery.release_leftovers(kubeconfig) == []
    assert len(recovery.release_leftovers(kubeconfig)) == 1


def test_recovers_despite_a_helm_of_another_cluster(
    release: Properties, kube: KubeClient, namespace: str, kubeconfig: str
) -> None:
    with helm("install", release, kubeconfig, kube):
        pass
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = yaml.safe_load(kubeconfig)
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{silent.getsockname()[1]}"
        with helm("install", release, yaml.safe_dump(config), kube):
            assert select.select([silent], [], [], 60)[0]
            assert len(recovery.release_leftovers(kubeconfig)) == 1


def test_plugin_and_helm_end_with_a_killed_engine(
    release: Properties, kube: KubeClient, namespace: str, kubeconfig: str
) -> None:
    start = "import subprocess, sys, time; subprocess.Popen(sys.argv[1]); time.sleep(120)"
    environment = os.environ | {"SIMULATOR_PYTHON": sys.executable}
    engine = subprocess.Popen(
        [sys.executable, "-c", start, str(PLUGINS / "pulumi-resource-kubernetes")],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    assert engine.stdout is not None
    try:
        with grpc.insecure_channel(f"127.0.0.1:{engine.stdout.readline().strip()}") as channel:
            stub = provider_pb2_grpc.ResourceProviderStub(channel)
            stub.Configure(provider_pb2.ConfigureRequest(variables={"kubernetes:config:kubeconfig": kubeconfig}))
            inputs = DEFAULTS | release | {"values": {"replicas": 1}}
            request = provider_pb2.CreateRequest(urn=urn(RELEASE, "rel"), properties=encode(inputs))
            call = stub.Create.future(request)
            wait_for_record(kube, namespace)
            engine.kill()
            assert select.select([engine.stdout], [], [], 60)[0]  # the plugin has ended
            assert call.exception(60) is not None
        eventually(lambda: recovery.release_leftovers(kubeconfig), "helm has ended")
        assert records.latest(kube, namespace, "rel") is None
    finally:
        with suppress(ProcessLookupError):  # all have ended
            os.killpg(engine.pid, signal.SIGKILL)
        engine.communicate()


@contextmanager
def helm(stage: str, release: Properties, kubeconfig: str, kube: KubeClient) -> Iterator[None]:
    file = Path(release["chart"]).parent / "kubeconfig"
    file.write_text(kubeconfig)
    namespace = release["namespace"]
    command = [
        str(paths.tool("helm")),
        stage,
        "rel",
        release["chart"],
        "--namespace",
        namespace,
        "--kubeconfig",
        str(file),
    ]
    process = subprocess.Popen([*command, "--set", "replicas=1", "--wait"], stdout=subprocess.DEVNULL)
    try:
        wait_for_record(kube, namespace)
        yield
    finally:
        process.kill()
        process.wait()
