"""Batches of scenarios, as their user sees them: outputs that are whole, evictions that cost none, nothing done twice.

One `up`; the tests follow each other.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import ContainerClient

from simulator.kube.client import ApiError
from tests.stories.runs import ended
from tests.support.world import Stack, eventually

pytestmark = [pytest.mark.simulator, pytest.mark.long]
SIZE = 16 * 1024
OPTIONS: dict[str, Any] = {
    "gpu-batch": {"gpuSeconds": 1, "count": 2},
    "resim": {"count": 2, "gpuSeconds": 1, "outputFiles": 2, "outputSize": "16Ki"},
}
STORAGE: dict[str, Any] = {
    "accounts": {
        "input": {"protect": False, "containers": {"input": {"upload": True}}},
        "output": {"protect": False, "containers": {"output": {"permissions": "racwdlmp"}}},
    }
}
NIGHT = [f"night-{number:03d}" for number in range(200)]
LIGHT = 'sleep 0.5; for part in a b; do echo "$SCENARIO" >"$OUTPUT/$part"; sleep 0.1; done'
"""Costs this machine little; between its two outputs it can be killed."""
EVICTIONS, KILLS = 12, 3


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack(
        "batches",
        vmSku="Standard_NC64as_T4_v3",
        workloads="gpu-batch,resim",
        workloadOptions=OPTIONS,
        storage=STORAGE,
        nodeCount=2,
    )
    made.up()
    with blobs(made, "input", "uploadSas") as inputs:
        inputs.upload_blob("drive.bin", b"d" * 1000)
        inputs.upload_blob("scenario-000007/own.bin", b"o" * 70)
    return made


def blobs(stack: Stack, container: str, sas: str) -> ContainerClient:
    outputs = stack.outputs("--show-secrets")
    url = outputs["platform"]["containers"][container]["url"]
    bundle = stack.world.environment["REQUESTS_CA_BUNDLE"]
    return ContainerClient.from_container_url(url, outputs["sas"][container][sas], connection_verify=bundle)


def resim(stack: Stack, *arguments: str, check: bool = True) -> str:
    """What the command puts out; where it may fail, what it says of that."""
    command = [sys.executable, "-m", "workloads.resim", *arguments, "--stack", stack.name]
    answer = stack.world.run(command, cwd=stack.folder, check=check)
    return answer.stdout if check else answer.stderr


def told(stack: Stack, *arguments: str) -> Any:
    return json.loads(resim(stack, *arguments, "--output", "json"))


def kept(stack: Stack, batch: str) -> dict[str, int]:
    """Sizes of the batch's blobs, by their names below it; folders have none."""
    with blobs(stack, "output", "sas") as outputs:
        listed = outputs.list_blobs(f"ai/{batch}/", include=["metadata"])
        files = [blob for blob in listed if "hdi_isfolder" not in (blob.metadata or {})]
    return {blob.name.removeprefix(f"ai/{batch}/"): blob.size for blob in files}


def test_the_stacks_own_jobs_pass(stack: Stack) -> None:
    found = ended(stack, stack)
    assert {each.phase for each in found.values()} == {"Complete"}
    assert all(verdict.startswith("VERDICT: PASS") for verdict in found["gpu-batch"].report.verdicts)
    assert told(stack, "status", "resim")["succeeded"] == 2


def test_twenty_jobs_with_input_and_output(stack: Stack) -> None:
    summary = told(stack, "submit", "--njobs", "20", "--name", "twenty", "--wait")
    assert (summary["state"], summary["succeeded"], summary["failed"], summary["left"]) == ("Complete", 20, 0, 0)
    assert summary["outputBytes"] == 20 * 2 * SIZE
    assert summary["inputBytes"] == 19 * 1070 + 70, "a scenario with a folder of its own reads that"
    found = kept(stack, "twenty")
    sizes = {name: size for name, size in found.items() if name.endswith(".bin")}
    expected = [f"results/scenario-{number:06d}/output/output-{file}.bin" for number in range(20) for file in (0, 1)]
    assert sizes == dict.fromkeys(expected, SIZE)
    assert sum(name.endswith("/log.txt") for name in found) == 20
    assert "at most $" in resim(stack, "status", "twenty") or summary["cost"]["usd"] > 0
    assert "read 70 bytes" in resim(stack, "logs", "twenty", "7")


def test_two_hundred_scenarios_through_evictions_each_finished_once(stack: Stack, tmp_path: Path) -> None:
    add_template(stack, "light", ["/bin/bash", "-c", LIGHT])
    listed = tmp_path / "night.txt"
    listed.write_text("\n".join(NIGHT))
    begun = told(stack, "submit", "--scenarios", str(listed), "--name", "night", "--template", "light")
    assert begun["left"] == 200
    disturb(stack, "night")
    summary = told(stack, "status", "night", "--wait")
    assert (summary["succeeded"], summary["failed"]) == (200, 0), summary
    assert summary["evicted"] + summary["retried"] > 0, "some were at work when they were told to end"
    found = kept(stack, "night")
    outputs = Counter(name.split("/")[1] for name in found if "/output/" in name and name.startswith("results/"))
    assert outputs == dict.fromkeys(NIGHT, 2), "all of each, and none of it twice"
    assert not [name for name in found if name.startswith("attempts/") and "/output/" in name]


def test_what_is_done_is_not_done_again(stack: Stack, tmp_path: Path) -> None:
    listed = tmp_path / "night.txt"
    listed.write_text("\n".join(NIGHT))
    again = ("submit", "--scenarios", str(listed), "--name", "night", "--template", "light")
    assert "all 200 scenarios asked for are done; nothing was created" in resim(stack, *again)
    assert [f"job.batch/{job} deleted" for job in ("night-1",)] == resim(stack, "cancel", "night").splitlines()
    with blobs(stack, "output", "sas") as outputs:
        outputs.delete_blob("ai/night/results/night-042/result.json")
        outputs.delete_blob("ai/night/results/night-042/output/a")
        outputs.delete_blob("ai/night/results/night-042/output/b")
        outputs.delete_blob("ai/night/results/night-042/log.txt")
    summary = told(stack, *again, "--wait")
    (row,) = [line.split() for line in resim(stack, "status").splitlines() if line.startswith("night ")]
    assert (summary["succeeded"], row[2]) == (200, "1"), "one index, not two hundred"


def test_a_name_stands_for_its_scenarios(stack: Stack, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("day-1\n")
    said = resim(stack, "submit", "--scenarios", str(other), "--name", "night", check=False)
    assert "batch night has other scenarios: 200" in said
    assert "fix:     --name batch-" in said


def add_template(stack: Stack, name: str, command: list[str]) -> None:
    """As another workload of the stack might."""
    config_map = stack.kube.get("v1", "ConfigMap", "resim-templates", "ai")
    template = json.loads(config_map["data"]["test-io.json"])
    container = template["template"]["spec"]["containers"][0]
    container["command"] = [*container["command"][:2], *command]
    data = config_map["data"] | {f"{name}.json": json.dumps(template)}
    plain = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "resim-templates", "namespace": "ai"}}
    stack.kube.apply(plain | {"data": data}, field_manager="test", force=True)


def disturb(stack: Stack, batch: str) -> None:
    """Evicts pods that run, some of them without any grace, as nodes that go away do."""
    disturbed: set[str] = set()
    for number in range(EVICTIONS + KILLS):
        name = eventually(lambda: running(stack, batch, disturbed), "a pod runs", every=0.2)
        disturbed.add(name)
        with contextlib.suppress(ApiError):  # it has ended meanwhile
            evict(stack, name, grace_s=25 if number < EVICTIONS else 0)


def running(stack: Stack, batch: str, but: set[str]) -> str:
    """A pod of the batch that runs, the last by name: names end in random characters."""
    pods = stack.kube.list("v1", "Pod", "ai", labels=f"ai-on-aks/batch={batch}")
    found = {pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"} - but
    return max(found, key=lambda name: name[-1], default="")


def evict(stack: Stack, name: str, *, grace_s: int) -> None:
    metadata, options = {"name": name, "namespace": "ai"}, {"gracePeriodSeconds": grace_s}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
    stack.kube.raw("POST", f"/api/v1/namespaces/ai/pods/{name}/eviction", json=body)
