"""The resources of this repository's stacks and of typical ones, as JSON beside this file: a review sees what changes.

`dev` is there whole; of each other stack, what differs, as a JSON merge patch (RFC 7396: what `dev` has and the stack
does not is null, lists are whole). So a change of all stacks is one difference to read, not thirteen; what `dev` alone
gains is a line in each.

After a change that is meant: `python -m tests.support.golden`, and read the difference before committing it.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import yaml

from components import platform_guard
from simulator.host.paths import ROOT
from tests.support.lookups import HUB, ZONES
from tests.support.mocked_azure import Azure
from tests.support.mocks import Recorder, Registered, program

FOLDER = Path(__file__).parent / "golden"
WHOLE = "dev"
H100 = "Standard_ND96isr_H100_v5"
H200 = "Standard_ND96isr_H200_v5"
T4 = "Standard_NC4as_T4_v3"
NCCL = "nccl-allreduce"
_LOCAL = {"localAccounts": True}
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJq0rP3vE1RLhmKfkQm3pYbnL5KqXwF0U2m6c8aZ5tQw me@example.com"
_SECRET = re.compile(r"\n +secure: .*")
_OWN_IMAGE = re.compile(r"(?<=azurecr\.io/)([a-z-]+):[0-9a-f]{12}")

FILES = {file.name.split(".")[1]: file for file in sorted(ROOT.glob("Pulumi.*.yaml"))}
"""The stack files of this repository."""
STACKS: dict[str, dict[str, Any]] = {
    "entra": {"vmSku": H100, "workloads": NCCL, "cluster": {"login": "workloadidentity"}},
    "spot": {"pools": {"a100": {"vmSku": "Standard_ND96asr_v4", "spot": True}}, "workloads": NCCL, "cluster": _LOCAL},
    "autoscale": {"pools": {"gpu": {"vmSku": H100, "autoscale": {"min": 0, "max": 4}}}, "workloads": NCCL},
    "two-pools": {
        "pools": {
            "h100": {"vmSku": H100, "labels": {"team": "a"}},
            "h200": {"vmSku": H200, "taints": ["team=b:NoSchedule"], "replace": "delete-first"},
        },
        "workloads": NCCL,
        "workloadOptions": {NCCL: {"pool": "h200", "numNodes": 1, "sharp": False}},
        "cluster": _LOCAL,
    },
    "teams": {
        "vmSku": H100,
        "nodeCount": 3,
        "workloads": NCCL,
        "cluster": _LOCAL,
        "operators": {"kueue": {"enabled": True}},
        "teams": {
            "blue": {"gpus": 8, "users": ["alice"]},
            "red": {"gpus": 8, "groups": ["0a0b0c0d-0000-0000-0000-000000000000"]},
        },
        "slackGpus": 8,
    },
    "two-accounts": {
        "vmSku": H100,
        "storage": {
            "accounts": {
                "input": {"auth": "identity", "containers": {"input": {}}},
                "output": {"containers": {"output": {"permissions": "racwdlmp", "profile": "checkpoints"}}},
            }
        },
        "workloads": "olmo",
        "workloadOptions": {"olmo": {"dataContainer": "input", "checkpointContainer": "output", "prepare": False}},
        "cluster": _LOCAL,
    },
    "batches": {
        "pools": {"spot": {"vmSku": T4, "spot": True}, "plain": {"vmSku": T4, "count": 1}},
        "storage": {
            "accounts": {
                "input": {"containers": {"input": {}}},
                "output": {"auth": "identity", "containers": {"output": {"permissions": "racwdlmp"}}},
            }
        },
        "workloads": ["gpu-batch", "resim"],
        "workloadOptions": {"resim": {"pool": "spot", "otherPools": ["plain"]}, "gpu-batch": {"pool": "plain"}},
        "cluster": _LOCAL,
    },
    "node-conditions": {
        "pools": {"h100": {"vmSku": H100}, "h200": {"vmSku": H200}},
        "cluster": _LOCAL,
        "operators": {"nodeProblemDetector": {"enabled": True}, "kubePrometheusStack": {"enabled": True}},
    },
    "t4": {"vmSku": T4, "nodeCount": 1, "cluster": _LOCAL},
    "no-nodes": {"vmSku": H100, "nodeCount": 0, "cluster": _LOCAL},
    "private-seed": {
        "vmSku": H100,
        "network": {"private": True, "addressSpace": "10.0.0.0/15", "policy": "calico"},
        "registry": {"sku": "Premium"},
        "storage": {"containers": {"data": {}}},
        "workloads": NCCL,
    },
    "private-outside": {
        "vmSku": H100,
        "network": {"private": True, "addressSpace": "10.0.0.0/24", "jumpBox": {"sshPublicKey": PUBLIC_KEY}},
        "registry": {"sku": "Premium"},
        "storage": {"containers": {"data": {}}},
        "workloads": NCCL,
    },
    "private-in-hub": {
        "vmSku": H100,
        "network": {
            "private": True,
            "id": HUB,
            "nodeSubnet": f"{HUB}/subnets/nodes",
            "endpointSubnet": f"{HUB}/subnets/endpoints",
            "zones": [f"{ZONES}/privatelink.eastus.azmk8s.io", f"{ZONES}/privatelink.azurecr.io"],
            "outbound": "loadBalancer",
        },
        "registry": {"sku": "Premium"},
        "workloads": NCCL,
    },
    "shared-files": {
        "vmSku": H100,
        "network": {"addressSpace": "10.0.0.0/16"},
        "storage": {"sharedFiles": "nfs"},
        "workloads": NCCL,
        "cluster": _LOCAL,
    },
    "mirror": {
        "vmSku": H100,
        "cluster": {**_LOCAL, "systemPool": {"taint": True}},
        "charts": {"source": "oci://mirror.example.com/charts"},
        "images": {"registry": "mirror.example.com"},
        "operators": {"gpuOperator": {"values": {"driver": {"version": "590.1"}}}},
        "workloads": NCCL,
    },
}  # fmt: skip
"""Typical stacks, as keys of a stack file."""
NAMES = (*FILES, *STACKS)
_OUTSIDE = ("private-outside",)
"""Those that are deployed from outside of their network."""


def keys(stack: str) -> dict[str, Any]:
    """The keys of a stack, with the secrets of its file in plain text."""
    if stack in STACKS:
        return STACKS[stack]
    text = _SECRET.sub(" a-password", FILES[stack].read_text(encoding="utf-8"))
    return {key.removeprefix("ai-on-aks:"): value for key, value in yaml.safe_load(text)["config"].items()}


@functools.cache
def run(stack: str) -> Recorder:
    """What one stack registers."""
    found = keys(stack)
    others = {found["platformStack"]: run(found["platformStack"])} if "platformStack" in found else {}
    return run_on(stack, Azure(stacks=others, inside=stack not in _OUTSIDE))


def run_on(stack: str, azure: Azure) -> Recorder:
    """What it registers there; typical ones go by the name of the one that they are compared with."""
    return program(keys(stack), azure, stack if stack in FILES else WHOLE, secret=["workloadOptions"])


def resources(recorder: Recorder) -> dict[str, Any]:
    """All resources but components, by type and name, in a stable order."""
    found = {f"{made.type} {made.name}": _entry(made) for made in recorder.registered if made.custom}
    others = {name for name in found if not name.split()[-1].startswith(platform_guard.NAME)}
    for entry in found.values():
        if set(entry.get("dependsOn", ())) == others:
            entry["dependsOn"] = "everything else"  # their names would be here twice
    shown: dict[str, Any] = json.loads(_OWN_IMAGE.sub(r"\1:[tag]", json.dumps(found, sort_keys=True)))
    return shown


def content(stack: str) -> dict[str, Any]:
    """What the golden file has to hold, from the program as it is now."""
    found = resources(run(stack))
    return found if stack == WHOLE else _patch(resources(run(WHOLE)), found)


def path(stack: str) -> Path:
    """Where a stack's golden file is."""
    return FOLDER / f"{stack}.json"


def _patch(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The JSON merge patch that makes the one of the other."""
    found: dict[str, Any] = {}
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            if below := _patch(old, new):
                found[key] = below
        elif old != new:
            found[key] = new
    return found


def _entry(resource: Registered) -> dict[str, Any]:
    waits = [name for name in resource.dependencies if not name.startswith("ai-on-aks:")]
    return {**({"dependsOn": waits} if waits else {}), "inputs": _without_files(resource)}


def _without_files(resource: Registered) -> dict[str, Any]:
    """Inputs without scripts and their digests, which would change with every word of a comment."""
    text = re.sub(r'("ai-on-aks/files": )"[0-9a-f]+"', r'\1"[digest]"', json.dumps(resource.inputs))
    text = re.sub(r'("customData": )"[^"]+"', r'\1"[custom data]"', text)
    inputs: dict[str, Any] = json.loads(text)
    if resource.type.endswith(":ConfigMap"):
        inputs["data"] = sorted(inputs.get("data", {}))
    return inputs


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for stack in NAMES:
        path(stack).write_text(json.dumps(content(stack), indent=1) + "\n", encoding="utf-8")
