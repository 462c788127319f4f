from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from k8s.objects import Object
from simulator.kubelet import folders
from simulator.kubelet.context import ContainerContext
from simulator.kubelet.events import EventRecorder
from simulator.kubelet.logs import LogFile
from simulator.kubelet.programs import OneShot, PodContext
from simulator.kubelet.pulls import ImagePulls
from simulator.kubelet.runner import Runnable
from simulator.kubelet.volumes import PodVolumes
from simulator.kubelet.worker import PodServices, PodWorker
from tests.unit.simulator.kubelet.cluster import Cluster

CLAIMED: Object = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


def make(
    name: str = "train-0", *, volumes: tuple[Object, ...] = (), init: tuple[Object, ...] = (), **container: Any
) -> Object:
    """Other arguments are fields of its container `main`."""
    main: Object = {"name": "main", "image": "dev.azurecr.io/olmo:1", **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ai", "uid": name, "annotations": {}, "labels": {}},
        "spec": {
            "nodeName": "n1",
            "restartPolicy": "Never",
            "containers": [main],
            "initContainers": list(init),
            "volumes": list(volumes),
        },
        "status": {"phase": "Pending", "podIP": "10.1.2.3"},
    }


def context(cluster: Cluster, pod: Object, container: Object | None = None) -> ContainerContext:
    metadata, node = pod["metadata"], pod["spec"]["nodeName"]
    volumes = PodVolumes(
        cluster.kube.as_client(),
        pod,
        cluster.folder / "pods" / metadata["uid"],
        node_root(cluster, node),
        "",
        cluster.claims,
        {"cpu": "95690m", "memory": "98765432Ki"},
    )
    return ContainerContext(
        pod=pod,
        container=container or pod["spec"]["containers"][0],
        node={"metadata": {"name": node}},
        volumes=volumes,
        logfile=LogFile(folders.logs_of(cluster.folder, pod) / (container or pod["spec"]["containers"][0])["name"]),
        tls=cast(ssl.SSLContext, None),
        neighbours=lambda: cluster.pods,
        choose_port=lambda port: port,
        proxy="socks5://127.0.0.1:1",
    )


def node_root(cluster: Cluster, node: str) -> Path:
    return cluster.folder / "nodes" / node


def start(
    cluster: Cluster, pod: Object, run: Callable[[PodContext], None], knows: Callable[[Object], bool] = lambda _: True
) -> PodWorker:
    """`knows` reports whether the program runs for a container; others run nothing."""
    cluster.has(pod)
    cluster.pods.append(pod)
    program: Runnable = OneShot(run)
    services = PodServices(
        kube=cluster.kube.as_client(),
        context=lambda pod, container: context(cluster, pod, container),
        program=lambda container: program if knows(container) else None,
        serve=lambda ip, ctx, program: None,
        unserve=lambda ip: None,
        pulls=ImagePulls(lambda image: cluster.azure.may_pull("", image)),
        recorder=EventRecorder(cluster.kube.as_client()),
    )
    return PodWorker(services, pod, "10.1.2.3", "10.224.0.4")


def status(cluster: Cluster, name: str = "train-0") -> Object:
    pod = cluster.kube.find("v1", "Pod", name, "ai")
    assert pod is not None
    found: Object = pod["status"]
    return found


def waiting(cluster: Cluster) -> Object:
    containers = status(cluster).get("containerStatuses", [])  # not before the first report
    state: Object = containers[0]["state"].get("waiting", {}) if containers else {}
    return state


def write_weights(ctx: PodContext, path: str) -> None:
    Path(ctx.host_path(path)).write_text("weights")
