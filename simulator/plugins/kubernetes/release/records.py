"""Helm's release records: Secrets `sh.helm.release.v1.<name>.v<revision>`, which contain gzipped JSON."""

from __future__ import annotations

import base64
import gzip
import json
from collections import defaultdict
from dataclasses import dataclass

import yaml

from k8s.objects import Object
from simulator.kube.client import KubeClient


@dataclass(frozen=True)
class Record:
    """A revision of a release. Helm's `status` is deployed, failed, pending-install, superseded, uninstalling, .."""

    name: str
    namespace: str
    revision: int
    status: str
    chart: Object  # Chart.yaml
    values: Object
    manifest: str
    secret: str

    @property
    def pending(self) -> bool:
        """Whether an operation is running, or its process died before the end."""
        return self.status.startswith("pending-")

    def resource_names(self) -> dict[str, list[str]]:
        """Returns the objects' names, with a namespace if the manifest has one, by kind and apiVersion."""
        names: dict[str, set[str]] = defaultdict(set)
        for obj in yaml.load_all(self.manifest, Loader=yaml.CSafeLoader):
            if not isinstance(obj, dict) or "kind" not in obj:
                continue
            api_version, metadata = str(obj["apiVersion"]), obj.get("metadata", {})
            group = api_version.rpartition("/")[0]
            kind = f"{obj['kind']}.{group}" if group else str(obj["kind"])
            namespace = metadata.get("namespace")
            names[f"{kind}/{api_version}"].add(
                f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
            )
        return {key: sorted(found) for key, found in sorted(names.items())}


def latest(kube: KubeClient, namespace: str, name: str) -> Record | None:
    """Returns the newest revision of a release in any status, or None."""
    found = history(kube, namespace, name)
    return found[-1] if found else None


def after(kube: KubeClient, namespace: str, name: str, before: Record | None) -> Record | None:
    """Returns the first revision after `before`, or None. Later revisions can be rollbacks of an atomic upgrade."""
    newer = (record for record in history(kube, namespace, name) if not before or record.revision > before.revision)
    return next(newer, None)


def history(kube: KubeClient, namespace: str, name: str) -> list[Record]:
    secrets = kube.list("v1", "Secret", namespace, labels=f"owner=helm,name={name}")
    return sorted((_decode(secret) for secret in secrets), key=lambda record: record.revision)


def everywhere(kube: KubeClient) -> list[Record]:
    newest: dict[tuple[str, str], Record] = {}
    for secret in kube.list("v1", "Secret", labels="owner=helm"):
        record = _decode(secret)
        key = (record.namespace, record.name)
        if key not in newest or newest[key].revision < record.revision:
            newest[key] = record
    return list(newest.values())


def _decode(secret: Object) -> Record:
    document = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
    return Record(
        name=document["name"],
        namespace=document.get("namespace") or secret["metadata"]["namespace"],
        revision=int(document["version"]),
        status=document["info"]["status"],
        chart=document["chart"]["metadata"],
        values=document.get("config") or {},
        manifest=document.get("manifest", ""),
        secret=secret["metadata"]["name"],
    )
