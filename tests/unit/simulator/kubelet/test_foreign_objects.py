from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from k8s.objects import Object
from simulator.azure.autoscaler import fit
from simulator.kube import drain
from simulator.kubelet.admission import Admission
from simulator.kubelet.csi.claims import is_node_plugin
from simulator.kubelet.devices import DeviceManager, status_patch
from simulator.kubelet.downward import field_text, resource_text
from simulator.kubelet.errors import VolumeNotReady
from simulator.kubelet.events import EventRecorder
from simulator.kubelet.nodes import NodeKeeper
from simulator.kubelet.placements import Placements
from simulator.kubelet.pods import PodCatalogue
from simulator.kubelet.programs import ImageProgram
from simulator.kubelet.status import ended_by_reboot, lost_with_node
from simulator.operators.device_plugins import extended_resources
from simulator.world import snapshot
from simulator.world.nodes import hardware_of
from tests.support.case_files import read
from tests.support.fake_kube import FakeKube

OBJECTS: dict[str, Object] = read(__file__, "foreign_objects")
NODE, POD = OBJECTS["node"], OBJECTS["pod"]
REQUIRED = {"metadata", "name", "namespace", "uid", "spec", "containers", "image", "nodeName", "kind", "apiVersion"}
REQUIRED |= {"key", "effect", "type", "status", "operator", "address", "mountPath", "values", "template"}
QUANTITIES = ["0", "1k", "2e0", "1500m", "0.5", "1Ki", "-1", 3, 0.5]


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if path and path[0] != "apiVersion":
            yield (*path, key)
        yield from paths(below, (*path, key))


def changed(obj: Object, path: tuple[Any, ...], value: Any) -> Object:
    """Returns a copy with the value at the path, or without that key for `delete`."""
    made = copy.deepcopy(obj)
    below = made
    for key in path[:-1]:
        below = below[key]
    if value == "delete":
        del below[path[-1]]
    else:
        below[path[-1]] = value
    return made


def variants(obj: Object) -> Iterator[tuple[str, Object]]:
    for path in paths(obj):
        shown = ".".join(map(str, path))
        if path[-1] not in REQUIRED and not isinstance(path[-1], int):
            yield f"{shown} deleted", changed(obj, path, "delete")
        if {"requests", "limits", "allocatable", "capacity"} & set(path[:-1]) or path[-1] == "sizeLimit":
            for quantity in QUANTITIES:
                yield f"{shown} {quantity!r}", changed(obj, path, quantity)


def inspect(node: Object, pod: Object, folder: Path) -> None:
    kube = FakeKube(copy.deepcopy(node), copy.deepcopy(pod))
    devices = DeviceManager(lambda: [pod])
    catalogue = PodCatalogue([ImageProgram("theirs", leaves="run/theirs")], lambda _: None)
    keeper = NodeKeeper(kube.as_client(), devices, extended_resources, folder)
    admission = Admission(kube.as_client(), keeper.allocate, EventRecorder(kube.as_client()))
    admission.admits(pod, node)
    for container in pod["spec"]["containers"]:
        catalogue.claims(container)
        for resource in ("limits.cpu", "requests.memory", "limits.memory", "limits.ephemeral-storage"):
            resource_text({"resource": resource}, pod, "c", (node.get("status") or {}).get("allocatable") or {})
    for path in ("metadata.labels['app']", "metadata.annotations", "status.podIP", "spec.nodeName", "status.hostIP"):
        field_text(pod, path)
    catalogue.runs_here(pod)
    catalogue.page(pod)
    catalogue.leaves(pod)
    keeper.sync([node], [pod], lambda *_: (_ for _ in ()).throw(VolumeNotReady("none")))
    Placements(folder / "placements.json").record([pod])
    is_node_plugin(pod, node["metadata"]["name"])
    ended_by_reboot(pod)
    lost_with_node(pod)
    snapshot.snapshot([node], [pod], {node["metadata"]["name"]: hardware_of(node)}, {})
    snapshot.shm_bytes(pod)
    status_patch(node, {})
    fit.is_waiting(pod)
    fit.place(node, fit.free(node, [pod]), fit.alike([pod]))
    fit.why_not(pod, node)
    drain.to_move([pod], node["metadata"]["name"])


def failures(made: Iterator[tuple[str, Object]], try_one: Callable[[Object], None]) -> list[str]:
    found = []
    for what, obj in made:
        try:
            try_one(obj)
        except Exception as error:  # noqa: BLE001 - the test shows all failures
            found.append(f"{what}: {error!r} in {traceback.extract_tb(error.__traceback__)[-1]}")
    return found


def test_accepts_nodes_with_missing_fields(tmp_path: Path) -> None:
    assert failures(variants(NODE), lambda node: inspect(node, POD, tmp_path)) == []


def test_accepts_pods_with_missing_fields(tmp_path: Path) -> None:
    assert failures(variants(POD), lambda pod: inspect(NODE, pod, tmp_path)) == []
