"""Golden files: the resources of this repository's and typical stacks as YAML.

Typical stacks are named `dev`, so that `diff dev.yaml spot.yaml` shows what a Spot pool changes. Unchanged objects of
an operator's release are kept as a hash (`released`): CRDs alone would be 98,000 lines. A Kubernetes object has a
`provider` if it is not the platform's: a team's stack creates objects as the team's user.

After an intended change, run `python -m tests.support.golden`, and read the diff.
"""

from __future__ import annotations

import functools
import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from components import platform_guard
from components.manifests import manifests
from config.data.versions import versions
from simulator.host.paths import ROOT
from tests.support import golden_format
from tests.support.lookups import NETWORKS
from tests.support.mocked_azure import Azure
from tests.support.mocks import Recorder, Registered, program

FOLDER = Path(__file__).parent.parent / "golden"
DEV = "dev"
CHARTS = "simulator/charts"
"""The source of released manifests without a chart."""
PROVIDER = "pulumi:providers:kubernetes kubernetes"
_SECRET = re.compile(r"\n +secure: .*")
_OWN_IMAGE = re.compile(r"(?<=azurecr\.io/)([a-z-]+):[0-9a-f]{12}")

FILES = {file.name.split(".")[1]: file for file in sorted(ROOT.glob("Pulumi.*.yaml"))}
_TEXT = Path(__file__).with_suffix(".yaml").read_text("utf-8").replace("NETWORKS", NETWORKS)
STACKS: dict[str, dict[str, Any]] = {
    name: keys for name, keys in yaml.safe_load(_TEXT).items() if not name.startswith("_")
}
"""Typical stacks, as keys of a stack file."""
PUBLIC_KEY: str = STACKS["private-outside"]["network"]["jumpBox"]["sshPublicKey"]
NAMES = (*FILES, *STACKS)
_OUTSIDE = ("private-outside",)
"""Stacks deployed from outside their network."""


def keys(stack: str) -> dict[str, Any]:
    """Returns a stack's keys, with secrets in plain text."""
    if stack in STACKS:
        return STACKS[stack]
    text = _SECRET.sub(" a-password", FILES[stack].read_text(encoding="utf-8"))
    return {key.removeprefix("ai-on-aks:"): value for key, value in yaml.safe_load(text)["config"].items()}


@functools.cache
def run(stack: str) -> Recorder:
    found = keys(stack)
    others = {found["platformStack"]: run(found["platformStack"])} if "platformStack" in found else {}
    azure = Azure(stacks=others, inside=stack not in _OUTSIDE)
    return program(found, azure, stack if stack in FILES else DEV, secret=["workloadOptions"])


def resources(recorder: Recorder) -> dict[str, Any]:
    """Returns all resources except components, by type and name."""
    found = {f"{made.type} {made.name}": _entry(made) for made in recorder.registered if made.custom}
    others = {name for name in found if not name.split()[-1].startswith(platform_guard.NAME)}
    for entry in found.values():
        if set(entry.get("dependsOn", ())) == others:
            entry["dependsOn"] = "everything else"  # else names would be here twice
    shown: dict[str, Any] = json.loads(_OWN_IMAGE.sub(r"\1:[tag]", json.dumps(found, sort_keys=True)))
    return shown


def reviewed(stack: str) -> dict[str, Any]:
    file = path(stack)
    return golden_format.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def path(stack: str) -> Path:
    return FOLDER / f"{stack}.yaml"


def _entry(resource: Registered) -> dict[str, Any]:
    waits = [name for name in resource.dependencies if not name.startswith("ai-on-aks:")]
    entry: dict[str, Any] = {"dependsOn": waits} if waits else {}
    if resource.type.startswith("kubernetes:") and resource.provider != PROVIDER:
        entry["provider"] = resource.provider
    if _is_released(resource):
        return {**entry, "released": _hash(resource.inputs)}
    return {**entry, "inputs": _readable(resource)}


def _is_released(resource: Registered) -> bool:
    operator = resource.parent.split()[-1] if resource.parent else ""
    return operator in versions().manifests and resource.inputs in manifests(operator, CHARTS)


def _hash(inputs: dict[str, Any]) -> str:
    return f"sha256:{sha256(json.dumps(inputs, sort_keys=True, separators=(',', ':')).encode()).hexdigest()}"


def _readable(resource: Registered) -> dict[str, Any]:
    """Returns inputs without scripts and their digests, which change with comments."""
    text = re.sub(r'("ai-on-aks/files": )"[0-9a-f]+"', r'\1"[digest]"', json.dumps(resource.inputs))
    text = re.sub(r'("customData": )"[^"]+"', r'\1"[custom data]"', text)
    inputs: dict[str, Any] = json.loads(text)
    if resource.type.endswith(":ConfigMap"):
        inputs["data"] = sorted(inputs.get("data", {}))
    version, _, kind = resource.type.removeprefix("kubernetes:").rpartition(":")
    in_type = {"apiVersion": version.removeprefix("core/"), "kind": kind.removesuffix("Patch")}
    return {name: value for name, value in inputs.items() if in_type.get(name) != value}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for stack in NAMES:
        path(stack).write_text(golden_format.dumps(resources(run(stack))), encoding="utf-8")
