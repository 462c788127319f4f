"""AKS's storage add-ons: CSI drivers and StorageClasses that the cluster's storageProfile enables."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from k8s.objects import Object
from simulator.kube.client import KubeClient

_MANAGED = {"addonmanager.kubernetes.io/mode": "Reconcile"}
_SELECTOR = "addonmanager.kubernetes.io/mode=Reconcile"
_KINDS = (
    ("storage.k8s.io/v1", "CSIDriver", None),
    ("storage.k8s.io/v1", "StorageClass", None),
    ("apps/v1", "DaemonSet", "kube-system"),
)
_MANAGER = "aks-addon-manager"


@functools.cache
def _data() -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return loaded


def objects(storage_profile: Mapping[str, Any]) -> list[Object]:
    """Returns the objects of an ARM storageProfile (`{"blobCSIDriver": {"enabled": true}, ...}`)."""
    found: list[Object] = []
    for field, addon in _data().items():
        if (storage_profile.get(field) or {}).get("enabled"):
            found += _objects(addon)
    return found


def apply(kube: KubeClient, storage_profile: Mapping[str, Any]) -> None:
    """Creates the objects of enabled add-ons, and deletes the objects of disabled add-ons. Can be repeated."""
    wanted = objects(storage_profile)
    names = {(obj["kind"], obj["metadata"]["name"]) for obj in wanted}
    for api, kind, namespace in _KINDS:
        for obj in kube.list(api, kind, namespace, labels=_SELECTOR):
            if (kind, obj["metadata"]["name"]) not in names:
                kube.delete(api, kind, obj["metadata"]["name"], namespace)
    for obj in wanted:
        kube.apply(obj, field_manager=_MANAGER, force=True)


def _objects(addon: Mapping[str, Any]) -> Iterator[Object]:
    driver = dict(addon["driver"])
    name = driver.pop("name")
    yield _object("storage.k8s.io/v1", "CSIDriver", name, spec=driver)
    for storage_class, parameters in addon["classes"].items():
        is_default = storage_class == addon.get("defaultClass")
        obj = _object(
            "storage.k8s.io/v1",
            "StorageClass",
            storage_class,
            provisioner=name,
            parameters=parameters,
            reclaimPolicy="Delete",
            allowVolumeExpansion=addon["allowVolumeExpansion"],
            volumeBindingMode=addon["volumeBindingMode"],
            mountOptions=addon.get("mountOptions", []),
        )
        if is_default:
            obj["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
        yield obj
    if plugin := addon.get("nodePlugin"):
        yield _node_plugin(plugin)


def _node_plugin(plugin: Mapping[str, str]) -> Object:
    labels = {"app": plugin["name"]}
    spec = {
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": plugin["container"], "image": plugin["image"]}],
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    body = {"selector": {"matchLabels": labels}, "template": template}
    obj = _object("apps/v1", "DaemonSet", plugin["name"], spec=body)
    obj["metadata"]["namespace"] = "kube-system"
    return obj


def _object(api: str, kind: str, name: str, **fields: Any) -> Object:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "labels": dict(_MANAGED)}, **fields}
