from __future__ import annotations

import copy
import itertools
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from k8s.objects import Object
from simulator.kube.client import ApiError, KubeClient, Resource
from simulator.kubelet.programs import PodContext
from simulator.world.nodes import DRIVER_ANNOTATION

Key = tuple[str, str, str]


class FakeKube:
    """Objects by kind, namespace and name. `apply` and `patch` merge fields."""

    def __init__(self, *objects: Object) -> None:
        self.objects: dict[Key, Object] = {}
        self.writes: list[str] = []
        self._versions = itertools.count(1)
        for obj in objects:
            self._put(copy.deepcopy(obj))

    def as_client(self) -> KubeClient:
        return cast(KubeClient, self)

    def list(
        self, _api: str, kind: str, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> list[Object]:
        found = [obj for (k, ns, _), obj in sorted(self.objects.items()) if k == kind and namespace in (None, ns)]
        if fields:
            path, _, value = fields.partition("=")
            found = [obj for obj in found if obj["spec"].get(path.rpartition(".")[2]) == value]
        return copy.deepcopy([obj for obj in found if _selected(obj["metadata"].get("labels", {}), labels)])

    def find(self, _api: str, kind: str, name: str, namespace: str | None = None) -> Object | None:
        return copy.deepcopy(self.objects.get((kind, namespace or "", name)))

    def get(self, api: str, kind: str, name: str, namespace: str | None = None) -> Object:
        if (found := self.find(api, kind, name, namespace)) is None:
            raise ApiError(404, "NotFound", f"{kind} {name} not found")
        return found

    def create(self, obj: Object, **_: Any) -> Object:
        return self._put(copy.deepcopy(obj), "create")

    def replace(self, obj: Object, **_: Any) -> Object:
        return self._put(copy.deepcopy(obj), "replace")

    def apply(self, obj: Object, **_: Any) -> Object:
        old = self.objects.get(_key(obj), {})
        return self._put(_merge(copy.deepcopy(old), copy.deepcopy(obj)), "apply")

    def patch(self, _api: str, kind: str, name: str, namespace: str | None, body: Object, **_: Any) -> Object:
        key = (kind, namespace or "", name)
        if key not in self.objects:
            raise ApiError(404, "NotFound", f"{kind} {name} not found")
        return self._put(_merge(self.objects[key], copy.deepcopy(body)), "patch")

    def delete(self, _api: str, kind: str, name: str, namespace: str | None = None, **_: Any) -> None:
        self.writes.append(f"delete {kind} {name}")
        del self.objects[(kind, namespace or "", name)]

    def raw(self, method: str, path: str, **_: Any) -> Object:
        """Returns a list for an informer, or a token named after its account; records other calls."""
        if method == "GET":
            items = FakeKube.list(self, "", path.rpartition("/")[2])
            return {"items": items, "metadata": {"resourceVersion": str(len(self.writes))}}
        self.writes.append(f"{method} {path}")
        account = path.removesuffix("/token").rpartition("/")[2]
        return {"status": {"token": f"token of {account}"}} if path.endswith("/token") else {}

    def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, kind, namespaced=False)

    def watch(self, *_: str, resource_version: str) -> Iterator[tuple[str, Object]]:
        """Ends at the next write or after a second, so that informers list again."""
        deadline = time.monotonic() + 1
        while len(self.writes) <= int(resource_version) and time.monotonic() < deadline:
            time.sleep(0.01)
        yield from ()

    def _put(self, obj: Object, verb: str = "") -> Object:
        metadata = obj["metadata"]
        if "generateName" in metadata:
            metadata["name"] = f"{metadata.pop('generateName')}{next(self._versions)}"
        metadata.setdefault("uid", f"uid-{metadata['name']}")
        metadata.setdefault("generation", 1)
        metadata["resourceVersion"] = str(next(self._versions))
        self.objects[_key(obj)] = obj
        if verb:
            self.writes.append(f"{verb} {obj['kind']} {metadata['name']}")
        return obj


def _key(obj: Object) -> Key:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _merge(into: Object, patch: Mapping[str, Any]) -> Object:
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict):
            into[key] = _merge(into.get(key) or {}, value)
        else:
            into[key] = value
    return into


def _selected(labels: Mapping[str, str], selector: str) -> bool:
    for term in filter(None, selector.split(",")):
        name, operator, value = re.fullmatch(r"(!?[^!=]+)(!=|==?|)(.*)", term).groups()  # type: ignore[union-attr]
        if operator:
            fits = (labels.get(name) == value) is (operator != "!=")
        else:
            fits = (name.lstrip("!") in labels) is not name.startswith("!")
        if not fits:
            return False
    return True


@dataclass
class Context:
    kube_: FakeKube
    node: Object = field(default_factory=dict)
    container: Object = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    neighbours: list[Object] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    pod: Object = field(
        default_factory=lambda: {"metadata": {"name": "pod", "namespace": "nvidia-operator", "uid": "u-1"}}
    )

    @property
    def kube(self) -> KubeClient:
        return self.kube_.as_client()

    def as_pod_context(self) -> PodContext:
        return cast(PodContext, self)

    def env(self) -> Mapping[str, str]:
        return self.environment

    def argv(self) -> list[str]:
        return [*self.container.get("command", []), *self.container.get("args", [])]

    def file(self, path: str) -> bytes | None:
        return self.files.get(path)

    def pods_on_node(self) -> list[Object]:
        return self.neighbours

    def log(self, line: str) -> None:
        self.lines.append(line)


def node(name: str, sku: str, *, labels: Mapping[str, str] | None = None, host_driver: bool = False) -> Object:
    """Returns a node with AKS's fields that operators read."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"node.kubernetes.io/instance-type": sku, "kubernetes.io/arch": "amd64", **(labels or {})},
            "annotations": {DRIVER_ANNOTATION: "aks"} if host_driver else {},
        },
        "spec": {},
        "status": {"nodeInfo": {"osImage": "Ubuntu 24.04.3 LTS", "kernelVersion": "6.8.0-1030-azure"}},
    }


def pod(name: str, labels: Mapping[str, str], node_name: str = "n", *, ready: bool = True, **spec: Any) -> Object:
    container = {"name": "c", "image": "registry/image:1"}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "nvidia-operator", "labels": dict(labels)},
        "spec": {"nodeName": node_name, "containers": [container], **spec},
        "status": {"conditions": conditions, "containerStatuses": [{"name": "mofed-container", "ready": ready}]},
    }


def roll_out(kube: FakeKube, name: str, nodes: int) -> None:
    counts = dict.fromkeys(
        ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady"), nodes
    )
    body = {"status": {**counts, "observedGeneration": 1}}
    kube.patch("apps/v1", "DaemonSet", name, "nvidia-operator", body)
