from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from k8s.objects import Object
from simulator.kube.client import ApiError
from tests.e2e.batches import LIGHT, add_template, blobs, most_at_once, output_sizes, resim, resim_json
from tests.e2e.runs import check_verdicts, wait_for_end
from tests.support.manifests import manifest
from tests.support.world import Stack, eventually

pytestmark = pytest.mark.simulator
SIZE = 16 * 1024
POOLS: dict[str, Any] = {
    "t4": {"vmSku": "Standard_NC4as_T4_v3", "count": 1, "gpuSlices": 2},
    "wide": {"vmSku": "Standard_NC64as_T4_v3", "count": 2, "gpuSlices": 4},
}
OPTIONS: dict[str, Any] = {
    "gpu-batch": {"pool": "t4", "gpuSeconds": 2, "count": 10},
    "resim": {"pool": "wide", "count": 2, "gpuSeconds": 1, "outputFiles": 2, "outputSize": "16Ki"},
}
STORAGE: dict[str, Any] = {
    "accounts": {
        "input": {"protect": False, "containers": {"input": {"upload": True}}},
        "output": {"protect": False, "containers": {"output": {"permissions": "racwdlmp"}}},
    }
}
EVICTIONS, KILLS = 12, 3


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack(
        "batches",
        vmSku=None,
        nodeCount=None,
        pools=POOLS,
        workloads="gpu-batch,resim",
        workloadOptions=OPTIONS,
        storage=STORAGE,
    )
    made.up()
    with blobs(made, "input", "uploadSas") as inputs:
        inputs.upload_blob("drive.bin", b"d" * 1000)
        inputs.upload_blob("scenario-000007/own.bin", b"o" * 70)
    return made


def test_each_scenario_is_finished_once_despite_evictions(stack: Stack, tmp_path: Path) -> None:
    """test_fleet.py has two thousand scenarios."""
    batch, count = "night", 60
    scenarios = [f"scenario-{number:03d}" for number in range(count)]
    add_template(stack, "light", LIGHT)
    listed = tmp_path / "night.txt"
    listed.write_text("\n".join(scenarios))
    begun = resim_json(stack, "submit", "--scenarios", str(listed), "--name", batch, "--template", "light")
    assert begun["left"] == count
    disturb(stack, batch)
    summary = resim_json(stack, "status", batch, "--wait")
    assert (summary["succeeded"], summary["failed"]) == (count, 0), summary
    assert summary["evicted"] + summary["retried"] > 0, "some scenarios ran when their pods were evicted"
    found = output_sizes(stack, batch)
    outputs = Counter(name.split("/")[1] for name in found if "/output/" in name and name.startswith("results/"))
    assert outputs == dict.fromkeys(scenarios, 2), "all outputs once"
    assert not [name for name in found if name.startswith("attempts/") and "/output/" in name]


def test_ten_jobs_share_one_gpu_two_at_a_time(stack: Stack) -> None:
    found = wait_for_end(stack, stack)
    assert {each.phase for each in found.values()} == {"Complete"}
    check_verdicts(found["gpu-batch"])
    pods = stack.kube.list("v1", "Pod", "ai", labels="batch.kubernetes.io/job-name=gpu-batch")
    assert (len(pods), list(most_at_once(map(span, pods)).values())) == (10, [2])


@pytest.mark.long
def test_twenty_jobs_with_input_and_output(stack: Stack) -> None:
    summary = resim_json(stack, "submit", "--njobs", "20", "--name", "twenty", "--wait")
    assert (summary["state"], summary["succeeded"], summary["failed"], summary["left"]) == ("Complete", 20, 0, 0)
    assert summary["outputBytes"] == 20 * 2 * SIZE
    assert summary["inputBytes"] == 19 * 1070 + 70, "a scenario with its own folder reads only that"
    found = output_sizes(stack, "twenty")
    sizes = {name: size for name, size in found.items() if name.endswith(".bin")}
    expected = [f"results/scenario-{number:06d}/output/output-{file}.bin" for number in range(20) for file in (0, 1)]
    assert sizes == dict.fromkeys(expected, SIZE)
    assert sum(name.endswith("/log.txt") for name in found) == 20
    with blobs(stack, "output") as outputs:
        log = outputs.download_blob("ai/twenty/results/scenario-000007/log.txt").readall()
    assert b"read 70 bytes" in log


@pytest.mark.long
def test_finished_scenarios_do_not_run_again(stack: Stack) -> None:
    again = ("submit", "--njobs", "20", "--name", "twenty")
    assert "all 20 scenarios are done; nothing was created" in resim(stack, *again)
    assert resim(stack, "cancel", "twenty").splitlines()[0] == "job.batch/twenty-1 deleted"
    with blobs(stack, "output") as outputs:
        for file in ("result.json", "output/output-0.bin", "output/output-1.bin", "log.txt"):
            outputs.delete_blob(f"ai/twenty/results/scenario-000013/{file}")
    summary = resim_json(stack, *again, "--wait")
    (job,) = stack.kube.list("batch/v1", "Job", "ai", labels="ai-on-aks/batch=twenty")
    assert (summary["succeeded"], job["spec"]["completions"]) == (20, 1), "one index, not twenty"


@pytest.mark.long
def test_destroy_works_while_a_batch_runs(stack: Stack) -> None:
    """Deletes Jobs first, because a namespace would wait forever for their pods (manifests.owner)."""
    add_template(stack, "lasting", "exec sleep 600")
    resim_json(stack, "submit", "--njobs", "20", "--name", "lasting", "--template", "lasting")
    eventually(lambda: running(stack, "lasting", set()), "a pod runs")
    stack.destroy()
    assert not stack.outputs()


def span(pod: Object) -> tuple[str, float, float]:
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    begun, end = (datetime.fromisoformat(ended[name]).timestamp() for name in ("startedAt", "finishedAt"))
    return pod["spec"]["nodeName"], begun, end


def disturb(stack: Stack, batch: str) -> None:
    """Evicts running pods, some without a grace period, like a deleted node's."""
    disturbed: set[str] = set()
    for number in range(EVICTIONS + KILLS):
        name = eventually(lambda: running(stack, batch, disturbed), "a pod runs", every=0.2)
        disturbed.add(name)
        with contextlib.suppress(ApiError):  # already ended
            evict(stack, name, grace_s=25 if number < EVICTIONS else 0)


def running(stack: Stack, batch: str, but: set[str]) -> str:
    """Returns a random running pod of the batch: the last by its name's random last character."""
    pods = stack.kube.list("v1", "Pod", "ai", labels=f"ai-on-aks/batch={batch}")
    found = {pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"} - but
    return max(found, key=lambda name: name[-1], default="")


def evict(stack: Stack, name: str, *, grace_s: int) -> None:
    body = manifest("policy/v1", "Eviction", name, "ai", deleteOptions={"gracePeriodSeconds": grace_s})
    stack.kube.raw("POST", f"/api/v1/namespaces/ai/pods/{name}/eviction", json=body)
