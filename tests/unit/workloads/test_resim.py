from __future__ import annotations

from typing import Any

import pytest

from components.context import BlobVolume
from config.problems.fixes import path_text
from config.schema.pools import PoolSettings
from config.schema.storage import StorageSettings
from tests.support.case_files import case_table
from tests.support.pools import RDMA, candidate, pool
from tests.support.sizes import T4
from workloads.resim import WORKLOAD
from workloads.resim.batch import MAX_BATCH_NAME, MOST_SCENARIOS
from workloads.resim.manifests import Batch, Run, blueprint, files, job_spec, load_of_options
from workloads.resim.options import ResimOptions

INPUT = BlobVolume(claim="input-1", read_only=True, annotations={"sas/input": "1"}, upload_secret=None)
OUTPUT = BlobVolume(
    claim="output-1", read_only=False, annotations={"sas/output": "1"}, upload_secret=None, service_account="blobs"
)
SPOT = pool(T4, agent_pool="spot1", taints=("sku=gpu:NoSchedule", "spot=true:NoSchedule"), max_nodes=5)
ON_DEMAND = pool(T4, agent_pool="plain1", max_nodes=2)
STORAGE: dict[str, Any] = {
    "accounts": {
        "in": {"containers": {"input": {}}},
        "out": {"containers": {"output": {"permissions": "racwdlmp"}}},
    }
}


def run(others: tuple[Any, ...] = (), **options: Any) -> Run:
    return Run(
        options=ResimOptions.model_validate(options),
        pool=SPOT,
        nodes=1,
        image="test-io:1",
        rdma_resource=RDMA,
        others=others,
        inputs=INPUT,
        outputs=OUTPUT,
    )


def made_of(others: tuple[Any, ...] = (), **options: Any) -> dict[str, Any]:
    found = run(others, **options)
    return blueprint(found, load_of_options(found))


def spec(batch: Batch = Batch("resim"), count: int = 200, **options: Any) -> dict[str, Any]:  # noqa: B008 - frozen
    found: dict[str, Any] = job_spec(made_of(**options), batch, count)
    return found


def container(found: dict[str, Any]) -> dict[str, Any]:
    (only,) = found["template"]["spec"]["containers"]
    return dict(only)


def variables(found: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container(found)["env"] if "value" in each}


# --- the Job ---


def test_an_eviction_does_not_count_as_a_failure() -> None:
    first, second = spec()["podFailurePolicy"]["rules"]
    assert first["action"] == "Ignore"
    assert first["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert (second["action"], second["onExitCodes"]["values"]) == ("FailIndex", [64])
    assert second["onExitCodes"]["containerName"] == container(spec())["name"]
    assert "exit 64\n" in files().contents["run-scenario.sh"]


def test_a_batch_has_a_deadline_and_is_kept() -> None:
    assert spec(hours=3)["activeDeadlineSeconds"] == 3 * 3600
    assert "ttlSecondsAfterFinished" not in spec()


def test_a_batch_may_end_early() -> None:
    found = spec(mostFailedPercent=5, enoughPercent=99)
    assert found["maxFailedIndexes"] == 10
    assert found["successPolicy"] == {"rules": [{"succeededCount": 198}]}
    assert spec(count=3, enoughPercent=50)["successPolicy"]["rules"][0]["succeededCount"] == 2
    assert spec(mostFailedPercent=0)["maxFailedIndexes"] == 0


def test_the_default_parallelism_is_the_number_of_gpus() -> None:
    assert spec()["parallelism"] == 5
    assert job_spec(made_of((ON_DEMAND,)), Batch("x"), 200)["parallelism"] == 7
    sliced = run((pool(T4, agent_pool="sliced1", max_nodes=3, shares=2),))
    assert blueprint(sliced, load_of_options(sliced))["parallelism"] == 11, "slices count as GPUs"
    two = run((pool(T4, max_nodes=3, shares=3),), gpus=2)
    assert blueprint(two, load_of_options(two))["parallelism"] == 3, "a scenario takes those of one node"
    assert spec(parallelism=60)["parallelism"] == 60
    assert spec(count=3)["parallelism"] == 3, "more than the number of indexes would always show as a change"


def test_submitted_batches_have_the_pods_of_the_stacks_batch() -> None:
    own, submitted = spec(), spec(Batch("night", 2))
    assert container(own)["command"] == container(submitted)["command"]
    assert {key: own[key] for key in own if key != "template"} == {k: submitted[k] for k in own if k != "template"}
    assert (variables(own)["LIST"], variables(submitted)["LIST"]) == ("", "runs/2.txt")
    assert (variables(own)["BATCH"], variables(submitted)["BATCH"]) == ("resim", "night")


def test_the_stacks_batch_has_a_folder_for_each_dataset() -> None:
    assert variables(spec(dataset="fleet/2026-11"))["BATCH"] == "resim@fleet@2026-11"
    assert variables(spec(Batch("night", 1), dataset="fleet/2026-11"))["BATCH"] == "night"


def test_pods_of_the_longest_batch_have_a_valid_host_name() -> None:
    assert len(f"{'a' * MAX_BATCH_NAME}-99999-{MOST_SCENARIOS - 1}") <= 63


# --- its pods ---


def test_runs_the_command_of_an_own_image() -> None:
    own = container(spec(command=["python3", "/opt/av/replay.py"]))["command"]
    assert own == ["/bin/bash", "/opt/resim/run-scenario.sh", "python3", "/opt/av/replay.py"]


# --- what is refused ---


def problems(storage: dict[str, Any] = STORAGE, **options: Any) -> list[tuple[str, str, str]]:
    spot = PoolSettings(vm_sku=T4)
    where = candidate(
        pool=spot,
        pool_path=("pools", "spot"),
        most_path=("pools", "spot", "count"),
        pool_key="spot",
        pools={"spot": spot, "plain": spot, "a100": PoolSettings(vm_sku="Standard_NC48ads_A100_v4")},
        storage=StorageSettings.model_validate(storage),
        scratch=False,
    )
    found = WORKLOAD.problems(ResimOptions.model_validate(options), where)
    return [(path_text(problem.path), problem.what, problem.fix) for problem in found]


def output(**settings: Any) -> dict[str, Any]:
    return {"accounts": {**STORAGE["accounts"], "out": {"containers": {"output": {}}, **settings}}}


def test_accepts_other_pools() -> None:
    assert problems(otherPools=["plain"]) == []


@case_table(__file__, "refused")
def test_rejects_batches_that_cannot_run(
    storage: dict[str, Any], options: dict[str, Any], where: str, what: str, fix: str
) -> None:
    assert problems(storage, **options) == [(where, what, fix)]


@pytest.mark.parametrize(("profile", "problem_count"), [("resimulation", 1), ("random-4k", 1), ("sequential", 0)])
def test_rejects_block_caches_with_an_identity(profile: str, problem_count: int) -> None:
    """Each pod has its own mount, and mounts cannot share a folder (blobfuse2, block_cache.go, Configure)."""
    storage = output(containers={"output": {"permissions": "racwdlmp", "profile": profile}}, auth="identity")
    found = problems(storage)
    assert len(found) == problem_count
    for where, _, fix in found:
        assert where == "storage.accounts.out.containers.output.profile"
        assert fix == f"pulumi config set --path {where} sequential"
    storage["accounts"]["out"]["auth"] = "sas"
    assert problems(storage) == []


def test_accepts_long_batches_with_an_identity() -> None:
    storage = output(containers={"output": {"permissions": "racwdlmp"}}, auth="identity")
    storage["accounts"]["in"] = {"auth": "identity", "containers": {"input": {}}}
    assert problems(storage, hours=24 * 300) == []
