"""Two accounts of one stack: a pod reads one with a SAS and writes to the other with its identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.azure_cluster import SCRIPT_IMAGE, AzureCluster
from tests.e2e.pods import run_pod
from tests.support.world import Stack, eventually

pytestmark = [pytest.mark.simulator, pytest.mark.long]
NAME = "accounts"
INPUT = f"{NAME}data"
STORAGE: dict[str, Any] = {
    "accounts": {
        "input": {"accountName": INPUT, "protect": False, "containers": {"corpus": {}}},
        "output": {"auth": "identity", "protect": False, "containers": {"results": {"permissions": "racwdlmp"}}},
    }
}


def test_a_pod_reads_from_one_account_and_writes_to_the_other(new_stack: Callable[..., Stack]) -> None:
    stack = new_stack(NAME, nodeCount=0, workloads="", storage=STORAGE)
    stack.up()
    made = stack.outputs()["storage"]["accounts"]
    assert made["input"]["account"] == INPUT != made["output"]["account"]
    with AzureCluster(stack.world, NAME).blobs("corpus") as blobs:
        blobs.upload_blob("shards/0", b"17 tokens")
    assert "Read-only file system" in run(stack, "cat /corpus/shards/0 > /results/copy; ! touch /corpus/mine")
    assert run(stack, "cat /results/copy") == "17 tokens"
    assert "unchanged" in stack.up("--expect-no-changes")


def run(stack: Stack, script: str) -> str:
    claims = [claim["metadata"]["name"] for claim in stack.kube.list("v1", "PersistentVolumeClaim", "ai")]
    mounts = {claim.partition("-")[0]: claim for claim in claims}
    container = {
        "name": "main",
        "image": SCRIPT_IMAGE,
        "command": ["bash", "-ec", script],
        "volumeMounts": [{"name": each, "mountPath": f"/{each}"} for each in mounts],
    }
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": claim}} for each, claim in mounts.items()]
    spec = {"restartPolicy": "Never", "serviceAccountName": "blobs", "containers": [container], "volumes": volumes}
    text = run_pod(stack.kube, "worker", spec)
    stack.kube.delete("v1", "Pod", "worker", "ai")  # a pod, even an ended one, keeps its claim
    eventually(lambda: stack.kube.find("v1", "Pod", "worker", "ai") is None, "the pod is gone")
    return text
