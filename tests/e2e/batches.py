from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from azure.storage.blob import ContainerClient

from tests.support.manifests import manifest
from tests.support.world import Stack

TEMPLATES = "resim-templates"
LIGHT = 'sleep 0.5; for part in a b; do echo "$SCENARIO" >"$OUTPUT/$part"; sleep 0.1; done'
"""A scenario with little CPU time, which can be killed between its two outputs."""


def resim(stack: Stack, *arguments: str) -> str:
    command = [sys.executable, "-m", "workloads.resim", *arguments, "--stack", stack.name]
    return stack.world.run(command, cwd=stack.folder, environment=stack.environment).stdout


def resim_json(stack: Stack, *arguments: str) -> Any:
    return json.loads(resim(stack, *arguments, "--output", "json"))


def blobs(stack: Stack, container: str, sas: str = "sas") -> ContainerClient:
    outputs = stack.outputs("--show-secrets")
    url = outputs["platform"]["containers"][container]["url"]
    environment = stack.environment
    proxies = {"https": environment["HTTPS_PROXY"]} if stack.inside else {}
    signature, trusted = outputs["sas"][container][sas], environment["REQUESTS_CA_BUNDLE"]
    return ContainerClient.from_container_url(url, signature, connection_verify=trusted, retry_total=1, proxies=proxies)


def output_sizes(stack: Stack, batch: str) -> dict[str, int]:
    with blobs(stack, "output") as outputs:
        listed = outputs.list_blobs(f"ai/{batch}/", include=["metadata"])
        files = [blob for blob in listed if "hdi_isfolder" not in (blob.metadata or {})]
    return {blob.name.removeprefix(f"ai/{batch}/"): blob.size for blob in files}


def add_template(stack: Stack, name: str, script: str) -> None:
    config_map = stack.kube.get("v1", "ConfigMap", TEMPLATES, "ai")
    template = json.loads(config_map["data"]["test-io.json"])
    container = template["template"]["spec"]["containers"][0]
    container["command"] = [*container["command"][:2], "/bin/bash", "-c", script]
    data = config_map["data"] | {f"{name}.json": json.dumps(template)}
    stack.kube.apply(manifest("v1", "ConfigMap", TEMPLATES, "ai", data=data), field_manager="test", force=True)


def results(stack: Stack, batch: str) -> list[dict[str, Any]]:
    names = [name for name in output_sizes(stack, batch) if name.endswith("/result.json")]
    with blobs(stack, "output") as outputs:
        return [json.loads(outputs.download_blob(f"ai/{batch}/{name}").readall()) for name in names]


def most_at_once(spans: Iterable[tuple[str, float, float]]) -> dict[str, int]:
    changes: dict[str, list[tuple[float, int]]] = {}
    for node, begun, ended in spans:
        changes.setdefault(node, []).extend([(begun, 1), (ended, -1)])
    return {node: _peak(found) for node, found in changes.items()}


def _peak(changes: Iterable[tuple[float, int]]) -> int:
    """In a second, ends sort before starts."""
    now = most = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most
