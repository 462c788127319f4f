"""Shared files on an NFS server, with project-codeflare/mlbatch's provisioner as all claims' class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from components import images
from config.data.scheduling import AUTOPILOT_LABEL
from k8s.objects import Object, is_ready
from simulator.host import paths
from tests.e2e.pods import run_pod
from tests.support.manifests import manifest
from tests.support.world import CommandFailed, Stack, eventually, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
EXPORT = {"server": "10.1.0.4", "path": "/exports/ai"}
CLASS = "nfs-client-pokprod"
PASSWORD = "ai-on-aks:workloadOptions"
SYSTEM = "kubernetes.azure.com/mode=system"


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    config = yaml.safe_load((paths.ROOT / "Pulumi.dev.yaml").read_text("utf-8"))["config"]
    made = new_stack(
        "shared",
        vmSku="Standard_NC4as_T4_v3",
        nodeCount=1,
        workloads="jupyterlab",
        workloadOptions={"jupyterlab": config[PASSWORD]["jupyterlab"]},
        operators={"nfsSubdirExternalProvisioner": {"enabled": True, **EXPORT}},
    )
    made.up()
    return made


def claim(stack: Stack, name: str, **spec: Any) -> None:
    wanted = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "5Gi"}}, **spec}
    make(stack, "v1", "PersistentVolumeClaim", name, spec=wanted)


def make(stack: Stack, api: str, kind: str, name: str, **content: Any) -> None:
    namespace = "" if kind == "StorageClass" else "default"
    stack.kube.create(manifest(api, kind, name, namespace, **content))


def run(stack: Stack, name: str, script: str, volume: Object, node: str = "") -> str:
    image = images.own("nccl-test", login_server=stack.outputs()["registry"], mirror=None)
    container: Object = {"name": "main", "image": image, "command": ["bash", "-ec", script]}
    container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    spec = {"restartPolicy": "Never", "containers": [container], "volumes": [{"name": "data", **volume}]}
    return run_pod(stack.kube, name, spec | ({"nodeName": node} if node else {}), "default")


def claimed(name: str) -> Object:
    return {"persistentVolumeClaim": {"claimName": name}}


def test_the_notebooks_claim_has_the_provisioners_class(stack: Stack) -> None:
    kube = stack.kube
    found = kube.get("v1", "PersistentVolumeClaim", f"jupyterlab-{CLASS}", "ai")
    assert (found["spec"]["storageClassName"], found["status"]["phase"]) == (CLASS, "Bound")
    volume = kube.get("v1", "PersistentVolume", found["spec"]["volumeName"])
    folder = f"ai-jupyterlab-{CLASS}-{volume['metadata']['name']}"
    assert volume["spec"]["nfs"] == {"server": EXPORT["server"], "path": f"{EXPORT['path']}/{folder}"}
    notebook = "app.kubernetes.io/name=jupyterlab"
    eventually(lambda: any(map(is_ready, kube.list("v1", "Pod", "ai", labels=notebook))), "the notebook runs", 180)
    stack.up("--expect-no-changes")


def test_a_pod_on_another_node_reads_a_pods_file(stack: Stack) -> None:
    first, second = names(stack.kube.list("v1", "Node", labels=SYSTEM))
    claim(stack, "team", storageClassName=CLASS)
    run(stack, "writer", "echo 17 tokens >/data/shard", claimed("team"), first)
    assert run(stack, "reader", "cat /data/shard", claimed("team"), second) == "17 tokens"


def test_the_folder_of_a_deleted_claim_is_archived(stack: Stack) -> None:
    kube = stack.kube
    volume = kube.get("v1", "PersistentVolumeClaim", "team", "default")["spec"]["volumeName"]
    for pod in ("writer", "reader"):
        kube.delete("v1", "Pod", pod, "default")
    kube.delete("v1", "PersistentVolumeClaim", "team", "default")
    eventually(lambda: volume not in names(kube.list("v1", "PersistentVolume")), "the volume is gone", 60)
    kept = f"archived-default-team-{volume}"
    assert run(stack, "owner", f"ls /data; cat /data/{kept}/shard", {"nfs": EXPORT}).split("\n")[-1] == "17 tokens"


def test_autopilot_tests_shared_files_on_each_node_and_can_be_enabled_again(stack: Stack) -> None:
    kube = stack.kube
    (node,) = names(kube.list("v1", "Node", labels="kubernetes.azure.com/mode=user"))
    provisioner = {"nfsSubdirExternalProvisioner": {"enabled": True, **EXPORT}}
    for turn in ("once", "twice"):
        stack.set(operators={**provisioner, "autopilot": {"enabled": True, "testSharedFiles": True}})
        stack.up()

        def verdict() -> str | None:
            found: str | None = kube.get("v1", "Node", node)["metadata"]["labels"].get(AUTOPILOT_LABEL)
            return found

        eventually(lambda: verdict() == "PASS", f"it has checked the node {turn}", 240)
        kept = run(stack, turn, "ls /data", {"nfs": EXPORT}).split()
        assert [folder for folder in kept if "autopilot-autopilot-" in folder], kept  # archived, or about to be
        stack.set(operators=provisioner)
        stack.up()
        assert not kube.find("apps/v1", "DaemonSet", "autopilot", "autopilot")
        kube.patch("v1", "Node", node, None, {"metadata": {"labels": {AUTOPILOT_LABEL: None}}})


def test_a_preview_rejects_an_unknown_class(stack: Stack) -> None:
    stack.set(storage={"sharedClass": "fast"})
    with pytest.raises(CommandFailed, match="resource 'fast' does not exist") as refused:
        stack.pulumi("preview")
    assert "StorageClass (storage.sharedClass)" in str(refused.value), "the resource has the name of its key"
    make(stack, "storage.k8s.io/v1", "StorageClass", "fast", provisioner="example.com/nfs")
    assert "PersistentVolumeClaim" in stack.pulumi("preview")


def test_without_a_cluster_a_preview_does_not_look_for_the_class(new_stack: Callable[..., Stack]) -> None:
    begun = new_stack("begun", workloads="", storage={"sharedClass": "fast"})
    assert "StorageClass" in begun.pulumi("preview")
