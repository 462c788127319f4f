from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from config.data.scheduling import COSCHEDULER
from tests.support.case_files import case_table
from tests.support.pools import RDMA, place
from tests.support.sizes import H100
from workloads._lib.pods import Mount
from workloads._lib.team import name_of
from workloads.pytorch_pretraining import manifests
from workloads.pytorch_pretraining.manifests import Run
from workloads.pytorch_pretraining.memory import checkpoint_bytes
from workloads.pytorch_pretraining.options import PretrainingOptions

CLAIM = Mount(name="checkpoints", path="/checkpoints", source={"persistentVolumeClaim": {"claimName": "claim"}})
TOKENS = Mount(name="data", path="/data", source={"persistentVolumeClaim": {"claimName": "tokens"}}, read_only=True)


def run(vm_sku: str = H100, nodes: int = 1, **options: Any) -> Run:
    return Run(
        options=PretrainingOptions.model_validate({"team": "blue", **options}),
        name="mine-pytorch-pretraining",
        namespace="blue",
        checkpoints=CLAIM,
        data=TOKENS if "dataContainer" in options else None,
        **place(vm_sku, nodes, scheduler=COSCHEDULER),
    )


def container(found: Run) -> dict[str, Any]:
    made: dict[str, Any] = manifests.template(found, "Never")["spec"]["containers"][0]
    return made


def argument(name: str, **options: Any) -> str | None:
    words = manifests.arguments(run(**options))
    return words[words.index(name) + 1] if name in words else None


def test_creates_a_master_and_workers() -> None:
    several = manifests.pytorch_job(run(nodes=3))["spec"]["pytorchReplicaSpecs"]
    assert {kind: pods["replicas"] for kind, pods in several.items()} == {"Master": 1, "Worker": 2}
    assert several["Master"]["template"] == several["Worker"]["template"]
    assert container(run())["name"] == "pytorch", "the training operator's webhook asks for it"


def test_restarts_failed_pods_only_without_an_appwrapper() -> None:
    """Running ranks do not accept a restarted one, so an AppWrapper restarts all."""
    wrapped = manifests.pytorch_job(run())["spec"]
    assert wrapped["pytorchReplicaSpecs"]["Master"]["restartPolicy"] == "Never"
    assert "backoffLimit" not in wrapped["runPolicy"]
    plain = manifests.pytorch_job(run(nodes=2, appWrapper=False, restarts=3))["spec"]
    assert plain["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] == "OnFailure"
    assert plain["runPolicy"]["backoffLimit"] == 6, "all pods' together"


def test_only_several_nodes_have_hcas() -> None:
    alone, several = container(run()), container(run(nodes=2))
    assert alone["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert "securityContext" not in alone
    assert several["resources"]["limits"] == {"nvidia.com/gpu": "8", RDMA: "8"}
    assert several["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}


@pytest.mark.parametrize(("gpus", "cpus"), [(8, "85"), (2, "21")])
def test_requests_the_same_share_of_cpus_as_of_gpus(gpus: int, cpus: str) -> None:
    requests = container(run(gpus=gpus))["resources"]["requests"]
    assert (requests["nvidia.com/gpu"], requests["cpu"]) == (str(gpus), cpus)
    assert {"name": "GPUS_PER_NODE", "value": str(gpus)} in container(run(gpus=gpus))["env"]


def test_passes_options_to_the_trainer() -> None:
    assert argument("--heads", modelSize="2.7b") == "20", "of 128 dimensions each"
    assert argument("--batch", modelSize="1.3b") == "512", "OPT's 1,048,576 tokens"
    assert argument("--batch", batch=64) == "64"
    assert argument("--steps", modelSize="1.3b") == "286102", "OPT's 300e9 tokens"
    assert argument("--steps", steps=20) == "20"
    assert argument("--data") is None
    assert argument("--data", dataContainer="tokens") == "/data"
    assert argument("--output") == "/checkpoints/blue/mine-pytorch-pretraining"
    assert "--fp8" in manifests.arguments(run(fp8=True))
    assert "--fp8" not in manifests.arguments(run())


def test_pods_have_time_to_save_before_a_forced_deletion() -> None:
    small, large = run(modelSize="125m"), run(modelSize="13b")
    assert manifests.grace_seconds(small) < manifests.grace_seconds(large)
    for each in (small, large):
        spec = manifests.template(each, "Never")["spec"]
        assert spec["terminationGracePeriodSeconds"] == manifests.grace_seconds(each)
        forced = manifests.wrapper_options(each)["forcefulDeletionGracePeriodDuration"]
        assert int(forced.removesuffix("m")) * 60 > manifests.grace_seconds(each)


@case_table(__file__, "saving")
def test_the_grace_period_depends_on_the_speed_of_the_storage(
    size: str, shared_class: str, options: dict[str, Any], bytes_s: float
) -> None:
    found = replace(run(nodes=2, modelSize=size, **options), shared_class=shared_class)
    assert manifests.grace_seconds(found) == pytest.approx(120 + 2 * checkpoint_bytes(found.options) / bytes_s, abs=1)


def test_does_not_repeat_the_workloads_name() -> None:
    assert name_of("pytorch-pretraining", "mine-") == "mine-pytorch-pretraining"
    assert name_of("pytorch-pretraining", "pytorch-pretraining-") == "pytorch-pretraining"


@pytest.mark.parametrize(("options", "end"), [({}, "steps"), ({"steps": 20}, "")])
def test_a_training_without_steps_has_an_open_end(options: dict[str, Any], end: str) -> None:
    assert PretrainingOptions.model_validate(options).open_end == end
