"""Volumes of pods: config maps, secrets, projected volumes, emptyDir and hostPath."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from k8s.objects import Object
from simulator.host.files import replace
from simulator.kube.client import ApiError, KubeClient
from simulator.kubelet.csi.claims import ClaimMounts, Mounted
from simulator.kubelet.csi.confined import contained
from simulator.kubelet.downward import field_text, resource_text
from simulator.kubelet.errors import VolumeNotReady

TOKEN_SECONDS = 24 * 3600
_FIXED = ("configMap", "secret", "projected", "downwardAPI")


@dataclass(frozen=True)
class PodVolumes:
    """A pod's volumes. `folder` is the pod's folder, and `node_root` the file system of its node."""

    kube: KubeClient
    pod: Object
    folder: Path
    node_root: Path
    certificate_authority: str
    """The cluster's CA (PEM)."""
    claims: ClaimMounts
    allocatable: Mapping[str, str]

    @property
    def namespace(self) -> str:
        return str(self.pod["metadata"]["namespace"])

    def path(self, volume: Object) -> Path:
        """Updates the volume from its source. Returns its folder or file on this machine."""
        name = volume["name"]
        if "hostPath" in volume:
            return host_path(self.node_root, volume["hostPath"])
        if "emptyDir" in volume:
            return self._made(name)
        if claim := self._claimed(volume):
            return claim.path
        files = self.files(volume)
        folder = self._made(name)
        for relative, content in files.items():
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            replace(target, content, self._mode(volume, relative))  # atomic, because a process may be reading the file
        for file in folder.rglob("[!.]*"):  # hidden files may be incomplete
            if file.is_file() and str(file.relative_to(folder)) not in files:
                file.unlink(missing_ok=True)  # its key was deleted
        return folder

    def refresh(self) -> None:
        """Updates volumes after changes of config maps and secrets. Raises VolumeNotReady."""
        for volume in self.pod["spec"].get("volumes", []):
            if _follows_objects(volume) and (self.folder / "volumes" / volume["name"]).exists():
                self.path(volume)

    def read_only(self, volume: Object) -> bool:
        """Returns whether the volume is read-only in every mount."""
        claim = self._claimed(volume)
        return any(kind in volume for kind in _FIXED) or (claim is not None and claim.read_only)

    def flush(self) -> None:
        """Sends the pod's writes to the blob containers of its volumes."""
        self.claims.flush(self.pod)

    def files(self, volume: Object) -> dict[str, bytes]:
        if "configMap" in volume:
            source = volume["configMap"]
            return self._keyed("ConfigMap", source["name"], source)
        if "secret" in volume:
            source = volume["secret"]
            return self._keyed("Secret", source["secretName"], source)
        if "projected" in volume:
            files: dict[str, bytes] = {}
            for source in volume["projected"].get("sources", []):
                files |= self._projected(source)
            return files
        if "downwardAPI" in volume:
            return self._downward(volume["downwardAPI"])
        kind = next((key for key in volume if key != "name"), "unknown")
        raise VolumeNotReady(f'volume "{volume["name"]}": the simulator does not support {kind} volumes')

    def service_account_token(self) -> str:
        spec = {
            "expirationSeconds": TOKEN_SECONDS,
            "boundObjectRef": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": self.pod["metadata"]["name"],
                "uid": self.pod["metadata"]["uid"],
            },
        }
        account = self.pod["spec"].get("serviceAccountName", "default")
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{account}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self.kube.raw("POST", path, json=request)["status"]["token"])

    def kubeconfig(self, token: str) -> str:
        authority = base64.b64encode(self.certificate_authority.encode()).decode()
        account = str(self.pod["spec"].get("serviceAccountName", "default"))
        endpoint = {"server": self.kube.server, "certificate-authority-data": authority}
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "cluster", "cluster": endpoint}],
                "users": [{"name": account, "user": {"token": token}}],
                "contexts": [{"name": "pod", "context": {"cluster": "cluster", "user": account}}],
                "current-context": "pod",
            }
        )

    def keyed_data(self, kind: str, name: str, *, optional: bool = False) -> dict[str, bytes]:
        found = self.kube.find("v1", kind, name, self.namespace)
        if found is None:
            if optional:
                return {}
            raise VolumeNotReady(f'{kind.lower()} "{name}" not found')
        if kind == "Secret":
            return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}
        text = {key: value.encode() for key, value in (found.get("data") or {}).items()}
        return text | {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}

    def _keyed(self, kind: str, name: str, source: Object) -> dict[str, bytes]:
        data = self.keyed_data(kind, name, optional=bool(source.get("optional")))
        if not source.get("items"):
            return data
        missing = [item["key"] for item in source["items"] if item["key"] not in data]
        if missing and not source.get("optional"):
            raise VolumeNotReady(f'{kind.lower()} "{name}" has no key {", ".join(missing)}')
        return {item["path"]: data[item["key"]] for item in source["items"] if item["key"] in data}

    def _projected(self, source: Object) -> dict[str, bytes]:
        if "serviceAccountToken" in source:
            try:
                return {source["serviceAccountToken"]["path"]: self.service_account_token().encode()}
            except ApiError as error:
                raise VolumeNotReady(f"failed to fetch token: {error.message}") from error
        if "configMap" in source:
            return self._keyed("ConfigMap", source["configMap"]["name"], source["configMap"])
        if "secret" in source:
            return self._keyed("Secret", source["secret"]["name"], source["secret"])
        if "downwardAPI" in source:
            return self._downward(source["downwardAPI"])
        raise VolumeNotReady(f"the simulator does not support projected volumes with {', '.join(source)}")

    def _downward(self, source: Object) -> dict[str, bytes]:
        return {item["path"]: self.downward(item).encode() for item in source.get("items", [])}

    def downward(self, source: Object, container: str = "") -> str:
        """Returns the value of a fieldRef or resourceFieldRef. A resourceFieldRef uses `container` by default."""
        if "fieldRef" in source:
            return field_text(self.pod, source["fieldRef"]["fieldPath"])
        return resource_text(source["resourceFieldRef"], self.pod, container, self.allocatable)

    def _mode(self, volume: Object, relative: str) -> int:
        source = next(volume[kind] for kind in _FIXED if kind in volume)
        for item in source.get("items") or []:
            if item["path"] == relative and "mode" in item:
                return int(item["mode"])
        return int(source.get("defaultMode", 0o644))

    def _claimed(self, volume: Object) -> Mounted | None:
        if export := volume.get("nfs"):
            return self.claims.mount_export(export)
        if source := volume.get("persistentVolumeClaim"):
            return self.claims.mount(self.pod, source["claimName"], read_only=bool(source.get("readOnly")))
        if "ephemeral" in volume:
            return self.claims.mount(self.pod, f"{self.pod['metadata']['name']}-{volume['name']}", read_only=False)
        return None

    def _made(self, name: str) -> Path:
        folder = self.folder / "volumes" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _follows_objects(volume: Object) -> bool:
    """Returns whether a volume has only config maps and secrets. Only such volumes can change while the pod runs."""
    sources = volume.get("projected", {}).get("sources") or [volume]
    return all("configMap" in source or "secret" in source for source in sources)


def host_path(node_root: Path, source: Object) -> Path:
    """Returns the path of a hostPath volume in the node's file system. `type` decides what is checked or created.

    Raises VolumeNotReady with the kubelet's message.
    """
    path = contained(node_root, node_root / str(source["path"]).lstrip("/"))
    kind = source.get("type") or ""
    if kind in ("", "DirectoryOrCreate") and not path.exists():
        path.mkdir(parents=True)
    elif kind == "FileOrCreate" and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    noun, fits = _HOST_PATH_TYPES.get(kind, ("", Path.exists))
    if not fits(path):
        raise VolumeNotReady(f"hostPath type check failed: {source['path']} is not a {noun}")
    return path


_HOST_PATH_TYPES: Mapping[str, tuple[str, Callable[[Path], bool]]] = {
    "Directory": ("directory", Path.is_dir),
    "DirectoryOrCreate": ("directory", Path.is_dir),
    "File": ("file", Path.is_file),
    "FileOrCreate": ("file", Path.is_file),
    "Socket": ("socket file", Path.exists),
    "CharDevice": ("character device", Path.exists),
    "BlockDevice": ("block device", Path.exists),
}
"""Each type's name and check. In simulated nodes, devices and sockets are plain files."""
