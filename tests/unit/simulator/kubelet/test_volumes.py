from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from k8s.objects import Object
from simulator.kubelet.errors import VolumeNotReady
from tests.support.case_files import case_table
from tests.unit.simulator.kubelet.cluster import Cluster
from tests.unit.simulator.kubelet.pods import context, make, node_root

SCRATCH = "/mnt/nvme/scratch"


def host_path(path: str, kind: str = "") -> Object:
    return {"name": "host", "hostPath": {"path": path, "type": kind}}


def path_of(cluster: Cluster, volume: Object, node: str = "n1") -> Path:
    pod = make(volumes=(volume,))
    pod["spec"]["nodeName"] = node
    return context(cluster, pod).volumes.path(volume)


def test_refreshes_existing_volumes_only(cluster: Cluster) -> None:
    config: Object = {"name": "config", "configMap": {"name": "volcano"}}
    token: Object = {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    unused: Object = {"name": "unused", "secret": {"secretName": "not-there"}}
    volumes = context(cluster, make(volumes=(config, token, unused))).volumes
    stored: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "volcano", "namespace": "ai"}}
    cluster.has(stored | {"data": {"conf": "enqueue", "gone": "soon"}})
    folder = volumes.path(config)
    assert sorted(file.name for file in folder.iterdir()) == ["conf", "gone"]
    cluster.has(stored | {"data": {"conf": "allocate"}})
    volumes.refresh()
    assert {file.name: file.read_text() for file in folder.iterdir()} == {"conf": "allocate"}
    assert not (folder.parent / "token").exists()


# -- the node's file system --------------------------------------------------------------------------------------------


def test_a_host_path_waits_until_a_pod_of_the_node_creates_it(cluster: Cluster) -> None:
    with pytest.raises(VolumeNotReady, match=f"hostPath type check failed: {SCRATCH} is not a directory"):
        path_of(cluster, host_path(SCRATCH, "Directory"))
    (path_of(cluster, host_path("/mnt", "DirectoryOrCreate")) / "nvme/scratch").mkdir(parents=True)
    assert path_of(cluster, host_path(SCRATCH, "Directory")).is_dir()
    with pytest.raises(VolumeNotReady, match="is not a directory"):
        path_of(cluster, host_path(SCRATCH, "Directory"), node="n2")


@pytest.mark.parametrize(
    ("kind", "words"),
    [("Directory", "is not a directory"), ("File", "is not a file"), ("Socket", "is not a socket file")],
)
def test_rejects_a_host_path_of_the_wrong_type(cluster: Cluster, kind: str, words: str) -> None:
    with pytest.raises(VolumeNotReady, match=words):
        path_of(cluster, host_path("/var/lib/hyperv/.kvp_pool_3", kind))


@pytest.mark.parametrize(("kind", "is_file"), [("FileOrCreate", True), ("DirectoryOrCreate", False), ("", False)])
def test_creates_a_host_path(cluster: Cluster, kind: str, *, is_file: bool) -> None:
    assert path_of(cluster, host_path("/var/log/syslog", kind)).is_file() is is_file


@pytest.mark.parametrize("target", ["/", "/etc", "../../../.."])
def test_rejects_a_link_from_the_node_to_this_machine(cluster: Cluster, target: str) -> None:
    scratch = node_root(cluster, "n1") / "mnt/nvme/scratch"
    scratch.parent.mkdir(parents=True)
    scratch.symlink_to(target)
    with pytest.raises(VolumeNotReady, match="the simulator does not follow links out of a volume"):
        path_of(cluster, host_path(SCRATCH, "Directory"))


# -- mounts of containers ----------------------------------------------------------------------------------------------

EMPTY: Object = {"name": "work", "emptyDir": {"medium": "Memory"}}


def source(cluster: Cluster, volume: Object, *, resources: Object | None = None, **mount: Any) -> Path:
    mounts = [{"name": volume["name"], "mountPath": "/work", **mount}]
    pod = make(volumes=(volume,), volumeMounts=mounts, resources=resources or {})
    pod["metadata"]["labels"]["run"] = "seven"
    ctx = context(cluster, pod)
    return ctx.source(ctx.container["volumeMounts"][0])


def test_a_sub_path_may_name_the_environment(cluster: Cluster) -> None:
    pod = make(
        volumes=(EMPTY,),
        volumeMounts=[{"name": "work", "mountPath": "/work", "subPathExpr": "runs/$(POD)"}],
        env=[{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    )
    ctx = context(cluster, pod)
    assert ctx.source(ctx.container["volumeMounts"][0]).parts[-2:] == ("runs", "train-0")


def test_rejects_a_sub_path_outside_of_its_volume(cluster: Cluster) -> None:
    (source(cluster, EMPTY) / "out").symlink_to("/etc")
    with pytest.raises(VolumeNotReady, match="does not follow links"):
        source(cluster, EMPTY, subPath="out")


def test_rejects_a_sub_path_that_is_not_in_the_config_map(cluster: Cluster) -> None:
    cluster.has(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf", "namespace": "ai"}, "data": {"a": "1"}}
    )
    volume = {"name": "conf", "configMap": {"name": "conf", "defaultMode": 0o555}}
    made = source(cluster, volume, subPath="a")
    assert made.read_text() == "1"
    assert made.stat().st_mode & 0o777 == 0o555
    with pytest.raises(VolumeNotReady, match="failed to prepare subPath"):
        source(cluster, volume, subPath="b")


def test_an_update_does_not_change_an_open_file(cluster: Cluster) -> None:
    def config(text: str) -> Object:
        metadata = {"name": "conf", "namespace": "ai"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": text}}

    volume = {"name": "conf", "configMap": {"name": "conf", "defaultMode": 0o440}}
    cluster.has(config("before"))
    made = path_of(cluster, volume)
    with (made / "a").open() as reader:
        cluster.has(config("after"))
        path_of(cluster, volume)
        assert reader.read() == "before"
    assert (made / "a").read_text() == "after"
    assert [file.name for file in made.iterdir()] == ["a"]


# -- environment -------------------------------------------------------------------------------------------------------


def test_expands_fields_and_references_in_the_environment(cluster: Cluster) -> None:
    def field(path: str) -> Object:
        return {"fieldRef": {"fieldPath": path}}

    index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    pod = make(
        env=[
            {"name": "JOB_COMPLETION_INDEX", "valueFrom": field(index)},
            {"name": "POD_IP", "valueFrom": field("status.podIP")},
            {"name": "NODE", "valueFrom": field("spec.nodeName")},
            {"name": "MASTER", "value": "olmo-0.$(SERVICE)"},
            {"name": "SERVICE", "value": "olmo"},
            {"name": "HOST", "value": "olmo-$(JOB_COMPLETION_INDEX).$(SERVICE)"},
        ]
    )
    pod["metadata"]["annotations"] = {"batch.kubernetes.io/job-completion-index": "3"}
    assert context(cluster, pod).env() == {
        "JOB_COMPLETION_INDEX": "3",
        "POD_IP": "10.1.2.3",
        "NODE": "n1",
        "MASTER": "olmo-0.$(SERVICE)",
        "SERVICE": "olmo",
        "HOST": "olmo-3.olmo",
    }


def test_references_are_expanded_in_values_only(cluster: Cluster) -> None:
    pod = make(
        env=[
            {"name": "HOME", "value": "/root"},
            {"name": "PASSWORD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['password']"}}},
            {"name": "PRICE", "value": "$$(HOME) is $(HOME)"},
        ]
    )
    pod["metadata"]["annotations"] = {"password": "a$$b$(HOME)"}
    assert context(cluster, pod).env() == {"HOME": "/root", "PASSWORD": "a$$b$(HOME)", "PRICE": "$(HOME) is /root"}


RESOURCES: Object = {"requests": {"cpu": "1500m", "memory": "1Gi"}, "limits": {"memory": "64Gi"}}


@case_table(__file__, "resources", file="resources")
def test_a_resource_field_has_the_unit_of_the_divisor(cluster: Cluster, resource: str, divisor: str, text: str) -> None:
    source = {"resourceFieldRef": {"resource": resource, "divisor": divisor}}
    pod = make(resources=RESOURCES, env=[{"name": "FOUND", "valueFrom": source}])
    assert context(cluster, pod).env()["FOUND"] == text


def test_rejects_resources_of_an_unknown_container(cluster: Cluster) -> None:
    source = {"resourceFieldRef": {"containerName": "sidecar", "resource": "limits.cpu"}}
    with pytest.raises(VolumeNotReady, match="container sidecar not found"):
        context(cluster, make(env=[{"name": "CPU", "valueFrom": source}])).env()


def test_a_downward_volume_has_fields_and_resources(cluster: Cluster) -> None:
    memory = {"containerName": "main", "resource": "limits.memory", "divisor": "1Gi"}
    items = [
        {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
        {"path": "memory", "resourceFieldRef": memory},
    ]
    made = source(cluster, {"name": "info", "downwardAPI": {"items": items}}, resources=RESOURCES)
    assert {file.name: file.read_text() for file in made.iterdir()} == {"name": "train-0", "memory": "64"}


def test_the_environment_has_a_key_or_all_keys_of_a_secret(cluster: Cluster) -> None:
    pod = make(
        envFrom=[{"secretRef": {"name": "sas"}, "prefix": "S_"}],
        env=[{"name": "NAME", "valueFrom": {"secretKeyRef": {"name": "sas", "key": "azurestorageaccountname"}}}],
    )
    env = context(cluster, pod).env()
    assert env["NAME"] == env["S_azurestorageaccountname"] == "olmodata"
