"""A container's environment, files, service account and log (the PodContext of programs.py)."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from k8s.objects import Object
from simulator.host import files
from simulator.kube.client import KubeClient
from simulator.kubelet.csi.confined import contained
from simulator.kubelet.errors import VolumeNotReady
from simulator.kubelet.logs import LogFile
from simulator.kubelet.volumes import PodVolumes

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


@dataclass
class ContainerContext:
    pod: Object
    container: Object
    node: Object
    volumes: PodVolumes
    logfile: LogFile
    tls: ssl.SSLContext
    neighbours: Callable[[], list[Object]]
    choose_port: Callable[[int], int]
    proxy: str
    _kube: KubeClient | None = field(default=None)

    @property
    def kube(self) -> KubeClient:
        if self._kube is None:
            self._kube = self.volumes.kube.with_token(self.volumes.service_account_token(), self.tls)
        return self._kube

    def env(self) -> Mapping[str, str]:
        values: dict[str, str] = {}
        for source in self.container.get("envFrom", []):
            prefix = source.get("prefix", "")
            for kind, key in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
                if reference := source.get(key):
                    data = self.volumes.keyed_data(kind, reference["name"], optional=bool(reference.get("optional")))
                    values |= {prefix + name: text.decode() for name, text in data.items()}
        for entry in self.container.get("env", []):
            if "valueFrom" not in entry:
                values[entry["name"]] = expand(entry.get("value", ""), values)
            elif (text := self._value_from(entry["valueFrom"])) is not None:
                values[entry["name"]] = text
        return values

    def argv(self) -> list[str]:
        """Returns command and arguments with `$(NAME)` expanded. If they are empty, the image's entrypoint runs."""
        env = self.env()
        return [expand(word, env) for word in (*self.container.get("command", []), *self.container.get("args", []))]

    def file(self, path: str) -> bytes | None:
        for mount in self.container.get("volumeMounts", []):
            try:
                relative = PurePosixPath(path).relative_to(mount["mountPath"])
            except ValueError:
                continue
            volume = self.volume(mount["name"])
            if "hostPath" in volume or "emptyDir" in volume:
                base = self.volumes.path(volume)
                target = contained(base, base / relative)
                return target.read_bytes() if target.is_file() else None
            key = mount.get("subPath") if str(relative) == "." else str(relative)
            return self.volumes.files(volume).get(str(key))
        return None

    def host_path(self, path: str) -> str:
        for mount in self.container.get("volumeMounts", []):
            mount_path = PurePosixPath(mount["mountPath"])
            if PurePosixPath(path).is_relative_to(mount_path):
                return str(self.source(mount) / PurePosixPath(path).relative_to(mount_path))
        raise VolumeNotReady(f"container {self.container['name']} has no mount at {path}")

    def source(self, mount: Object) -> Path:
        """Returns the file or folder of this machine for a volumeMount. Creates a missing subPath."""
        volume = self.volume(mount["name"])
        base = self.volumes.path(volume)
        below = expand(mount.get("subPathExpr", ""), self.env()) or mount.get("subPath", "")
        path = contained(base, base / below)
        if below and not path.exists():
            if self.volumes.read_only(volume):
                where = f'volumeMount "{mount["name"]}" of container "{self.container["name"]}"'
                raise VolumeNotReady(f"failed to prepare subPath for {where}: {below} does not exist")
            path.mkdir(parents=True)
        return path

    def kubeconfig(self) -> str:
        with_token = self.volumes.kubeconfig(self.volumes.service_account_token())
        path = self.volumes.folder / "kubeconfig"
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, with_token)
        return str(path)

    def local_port(self, container_port: int) -> int:
        return self.choose_port(container_port)

    def cluster_proxy(self) -> str:
        return self.proxy

    def volume(self, name: str) -> Object:
        volumes: list[Object] = self.pod["spec"].get("volumes", [])
        return next(volume for volume in volumes if volume["name"] == name)

    def pods_on_node(self) -> list[Object]:
        return self.neighbours()

    def log(self, line: str) -> None:
        self.logfile.line(line)

    def _value_from(self, source: Object) -> str | None:
        if "fieldRef" in source or "resourceFieldRef" in source:
            return self.volumes.downward(source, self.container["name"])
        for kind, key in (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")):
            if reference := source.get(key):
                optional = bool(reference.get("optional"))
                data = self.volumes.keyed_data(kind, reference["name"], optional=optional)
                if reference["key"] in data:
                    return data[reference["key"]].decode()
                if optional:
                    return None
                raise VolumeNotReady(f"couldn't find key {reference['key']} in {kind} {reference['name']}")
        raise VolumeNotReady(f"the simulator cannot resolve an environment value from {', '.join(source)}")


def expand(text: str, values: Mapping[str, str]) -> str:
    """Expands `$(NAME)` references, like Kubernetes. Unknown references stay. `$$` becomes `$`."""

    def substitute(match: re.Match[str]) -> str:
        return "$" if match.group(0) == "$$" else values.get(match.group(1), match.group(0))

    return _REFERENCE.sub(substitute, text)
