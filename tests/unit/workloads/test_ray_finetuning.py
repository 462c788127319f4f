from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from config.data.allocatable import allocatable
from config.data.language_models import language_models
from config.data.scheduling import COSCHEDULER
from k8s.quantities import value
from simulator.host.paths import ROOT
from tests.support.case_files import case_table
from tests.support.docker_modules import imported
from tests.support.pools import RDMA, place, pool
from tests.support.sizes import H100
from workloads._lib import data_check as _data_check
from workloads._lib.pods import Mount
from workloads._lib.team_training import CHECKPOINTS, DATA
from workloads.ray_finetuning import manifests
from workloads.ray_finetuning.manifests import Run
from workloads.ray_finetuning.options import SYNTHETIC, FinetuningOptions
from workloads.ray_finetuning.problems import bytes_per_gpu

CLAIM = Mount(name="checkpoints", path=CHECKPOINTS, source={"persistentVolumeClaim": {"claimName": "claim"}})
LINES = Mount(name="data", path=DATA, source={"persistentVolumeClaim": {"claimName": "lines"}}, read_only=True)
NAME = "mine-ray-finetuning"


def run(vm_sku: str = H100, nodes: int = 1, *, data: bool = False, **options: Any) -> Run:
    return Run(
        options=FinetuningOptions.model_validate({"team": "blue", **options}),
        name=NAME,
        namespace="blue",
        checkpoints=CLAIM,
        data=LINES if data else None,
        **place(vm_sku, nodes, scheduler=COSCHEDULER),
    )


def pods(found: Run) -> dict[str, Any]:
    job = manifests.ray_job(found)
    cluster = job["rayClusterSpec"]
    (group,) = cluster["workerGroupSpecs"]
    head, submitter = cluster["headGroupSpec"]["template"], job["submitterPodTemplate"]
    return {"head": head, "worker": group["template"], "submitter": submitter}


def argument(name: str, found: Run) -> list[str]:
    words = shlex.split(manifests.ray_job(found)["entrypoint"])
    assert words[:3] == ["python", "-m", "finetuning.ray_train"]
    if name not in words:
        return []
    rest = words[words.index(name) + 1 :]
    return rest[: next((at for at, word in enumerate(rest) if word.startswith("--")), len(rest))]


def test_only_workers_have_gpus_and_ranks() -> None:
    made = pods(run(gpus=4))
    limits = {name: each["spec"]["containers"][0]["resources"]["limits"] for name, each in made.items()}
    assert limits["worker"] == {"nvidia.com/gpu": "4"}
    assert all("nvidia.com/gpu" not in limits[name] for name in ("head", "submitter"))
    head = manifests.ray_job(run())["rayClusterSpec"]["headGroupSpec"]
    assert head["rayStartParams"]["num-cpus"] == "0"


@pytest.mark.parametrize("gpus", [1, 8])
def test_all_pods_fit_into_the_quota_of_the_gpus(gpus: int) -> None:
    """The quota is the GPUs' share of a node's resources (operators/kueue/queues.py, quotas)."""
    asked = [each["spec"]["containers"][0]["resources"]["requests"] for each in pods(run(gpus=gpus)).values()]
    node, share = allocatable(pool(H100).sku), gpus / 8
    assert sum(value(each["cpu"]) for each in asked) <= node.cpu_millis * share / 1000
    assert sum(value(each["memory"]) for each in asked) <= node.memory_kib * share * 1024


def test_passes_options_to_the_loop() -> None:
    assert argument("--workers", run(nodes=2, gpus=4)) == ["8"]
    assert argument("--batch", run()) == ["8"]
    assert argument("--batch", run(nodes=2)) == ["16"], "one pack for each GPU"
    assert argument("--batch", run(batch=32)) == ["32"]
    assert argument("--data", run()) == []
    assert argument("--data", run(data=True)) == ["/data"]
    assert argument("--targets", run()) == [], "peft has them for OPT"
    assert argument("--targets", run(model="ibm-granite/granite-3.2-8b-instruct")) == ["q_proj", "v_proj"]
    assert argument("--rank", run(rank=8)) == ["8"]
    assert argument("--checkpoint-steps", run(checkpointSteps=7)) == ["7"]


@case_table(__file__, "folders")
def test_only_another_training_has_another_folder(changed: dict[str, Any], another: bool) -> None:
    """The default batch of two nodes differs from one node's; that of half of a node's GPUs does not."""
    (first,), (then,) = argument("--output", run()), argument("--output", run(**changed))
    assert (first != then) is another
    assert all(re.fullmatch(rf"/checkpoints/blue/{NAME}/[0-9a-f]{{12}}", each) for each in (first, then))


def test_only_workers_get_data_and_token() -> None:
    made = pods(run(data=True, huggingFaceToken="hf_abc"))
    paths = {
        name: {each["mountPath"] for each in pod["spec"]["containers"][0].get("volumeMounts", [])}
        for name, pod in made.items()
    }
    assert paths == {"head": {CHECKPOINTS}, "worker": {CHECKPOINTS, DATA, "/dev/shm"}, "submitter": set()}
    secret = {"secretKeyRef": {"name": NAME, "key": "HF_TOKEN"}}
    assert made["worker"]["spec"]["containers"][0]["env"] == [{"name": "HF_TOKEN", "valueFrom": secret}]
    assert all("env" not in made[name]["spec"]["containers"][0] for name in ("head", "submitter"))


def test_the_check_of_data_queues_without_gpus() -> None:
    job = _data_check.manifest(run(data=True), ["python", "-m", "finetuning.lines", DATA])
    assert job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "default-queue"}
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert not {"nvidia.com/gpu", RDMA} & container["resources"]["requests"].keys()
    assert container["volumeMounts"] == [{"name": "data", "mountPath": DATA, "readOnly": True}]
    assert (pod["volumes"], pod["affinity"]) == ([LINES.volume()], pods(run())["head"]["spec"]["affinity"])
    assert spec["backoffLimit"] == 0
    assert {rule["action"] for rule in spec["podFailurePolicy"]["rules"]} == {"Ignore"}, "Pulumi sees no FailJob"
    assert "ttlSecondsAfterFinished" not in spec, "a refresh would create it again"


def test_overrides_apply_to_workers() -> None:
    made = pods(run(podOverrides={"spec": {"priorityClassName": "low-priority"}}))
    assert [name for name, each in made.items() if "priorityClassName" in each["spec"]] == ["worker"]


def test_settings_and_loop_have_the_same_number_of_examples() -> None:
    assert imported("ray-finetuning", "finetuning.options").SYNTHETIC[0] == SYNTHETIC


def test_the_loop_reports_all_errors_in_its_options() -> None:
    options = imported("ray-finetuning", "finetuning.options")
    words = "--model m --output o --pack 1024 --longest 2048 --batch 12 --evaluation 2048".split()  # noqa: SIM905
    with pytest.raises(ValueError, match="use --batch 16; --longest is 2048, more than .*; allowed: 0 to 2047"):
        options.check(options.parser().parse_args(words), 8, 2048)


def test_kuberay_gets_the_images_version_of_ray() -> None:
    dockerfile = (ROOT / "docker" / "ray-finetuning" / "Dockerfile").read_text()
    (version,) = re.findall(r"ray\[[a-z,]+\]==([\d.]+)", dockerfile)
    assert version == manifests.RAY_VERSION == manifests.ray_job(run())["rayClusterSpec"]["rayVersion"]


def test_the_memory_estimate_is_close_to_measurements() -> None:
    """docs/performance.md: OPT-1.3b, rank 16."""

    def needed(**options: Any) -> float:
        found = FinetuningOptions.model_validate(options)
        assert found.known
        return bytes_per_gpu(found.known, found)

    assert needed(pack=16384) / 2**30 == pytest.approx(17.1, rel=0.02)
    by_size = [needed(model=name) for name in language_models() if name.startswith("facebook/")]
    assert by_size == sorted(by_size)
    assert needed() < needed(rank=64) < needed(pack=16384)
