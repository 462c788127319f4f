from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from components import images
from config.data.scheduling import GPU_RESOURCE
from k8s.objects import Object, condition
from operators.kueue import queues
from simulator.host.paths import ROOT
from tests.e2e.policies import offered_gpus
from tests.support.world import Stack, eventually

QUEUED = {"kueue.x-k8s.io/queue-name": "default-queue"}
GPUS = 8


def shared_stack(new_stack: Callable[..., Stack], name: str, nodes: int, **config: Any) -> Stack:
    made = new_stack(name, **{"workloads": "", "nodeCount": nodes, **config})
    made.up()
    eventually(lambda: offered_gpus(made) == [GPUS] * nodes, "all nodes offer their GPUs", 300)
    return made


def kubectl(stack: Stack, *arguments: str) -> str:
    return stack.world.run(["env", f"KUBECONFIG={stack.world.kubeconfig(stack.name)}", "kubectl", *arguments]).stdout


def as_member(platform: Stack, line: str, user: str, folder: Path = ROOT) -> str:
    """Runs a kubectl command from a stack's outputs as `user`."""
    entered = re.sub(r"\bkubectl\b", f"kubectl --as {user}", line)
    kubeconfig = f"KUBECONFIG={platform.world.kubeconfig(platform.name)}"
    return platform.world.run(["env", kubeconfig, "bash", "-o", "pipefail", "-ec", entered], cwd=folder).stdout


def apply(stack: Stack, job: Object, team: str, user: str = "") -> None:
    file = Path(stack.folder, f"{job['metadata']['name']}.yaml")
    file.write_text(yaml.safe_dump(job))
    kubectl(stack, "apply", *(["--as", user] if user else []), "-n", team, "-f", str(file))


def container(stack: Stack, *command: str, gpus: int = GPUS, name: str = "main") -> Object:
    image = images.own("nccl-test", login_server=stack.outputs()["registry"], mirror=None)
    limits = {"cpu": 1, "memory": "1Gi", **({GPU_RESOURCE: gpus} if gpus else {})}
    return {"name": name, "image": image, "command": list(command), "resources": {"limits": limits}}


def quota_reserved(stack: Stack, team: str, name: str) -> Object:
    return condition(workload(stack, team, name), "QuotaReserved")


def workload(stack: Stack, team: str, name: str) -> Object:
    found = stack.kube.list(queues.API, "Workload", team)
    return next((each for each in found if each["metadata"]["ownerReferences"][0]["name"] == name), {})
