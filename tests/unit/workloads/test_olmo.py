from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from components.context import BlobVolume
from config.data.blobfuse import files_at_once
from tests.support.pools import place, pool
from tests.support.sizes import H100
from workloads._lib.indexed_job import HOPELESS
from workloads.olmo import manifests, preparation
from workloads.olmo.manifests import Run
from workloads.olmo.options import OlmoOptions

DATA = BlobVolume(claim="olmo-data", read_only=True, annotations={"sas/olmo-data": "1"}, upload_secret="up")
CHECKPOINTS = BlobVolume(claim="olmo-checkpoints", read_only=False, annotations={"sas/out": "1"}, upload_secret=None)


def run(vm_sku: str = H100, nodes: int = 1, data: BlobVolume = DATA, scheduler: str = "volcano", **options: Any) -> Run:
    return Run(
        options=OlmoOptions.model_validate(options),
        data=data,
        checkpoints=CHECKPOINTS,
        **place(vm_sku, nodes, scratch="/mnt/nvme/scratch", scheduler=scheduler),
    )


def template(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = manifests.job_spec(run(**fields))["template"]
    return found


def container(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = template(**fields)["spec"]["containers"][0]
    return found


# --- the training ---


def test_uses_coschedulings_pod_group_label() -> None:
    """A PodGroup of scheduling.x-k8s.io selects pods by label, not by Volcano's annotation."""
    found = template(nodes=2, scheduler="scheduler-plugins-scheduler")
    assert found["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
    assert found["metadata"]["labels"] == {"scheduling.x-k8s.io/pod-group": "olmo"}
    assert not [name for name in found["metadata"].get("annotations", {}) if name.startswith("scheduling")]


def test_retries_after_a_lost_node_but_not_after_a_wrong_setting() -> None:
    spec = manifests.job_spec(run(nodes=2, restarts=3))
    assert spec["backoffLimit"] == 6, "a failed training counts as a failure of every pod"
    ignored, final = spec["podFailurePolicy"]["rules"]
    assert (ignored["action"], ignored["onPodConditions"][0]["type"]) == ("Ignore", "DisruptionTarget")
    assert (final["action"], final["onExitCodes"]["values"]) == ("FailJob", [HOPELESS])
    assert f"exit {HOPELESS}\n" in manifests.files(pool()).contents["dataset.sh"]
    assert final["onExitCodes"]["containerName"] == container()["name"]
    assert template()["spec"]["restartPolicy"] == "Never", "failure policies need it"


@pytest.mark.parametrize("profile", ["checkpoints", "sequential"])
def test_writes_only_as_many_files_in_parallel_as_the_mount_has_blocks(profile: str) -> None:
    """Each rank writes as many files in parallel as OLMo-core has threads, by default 16."""
    found = manifests.variables(run())
    assert int(found["OLMO_NUM_THREADS"]) * int(found["GPUS_PER_NODE"]) <= files_at_once(profile)


def test_passes_options_to_the_script() -> None:
    variables = manifests.variables(
        run(config="OLMo2-7B", stopAt=20, maxFiles=2, evaluate=False, runName="mine", microBatch=1)
    )
    assert variables["CONFIG"] == "/opt/OLMo/configs/official-1124/OLMo2-7B-stage1.yaml"
    assert (variables["STOP_AT"], variables["MAX_FILES"], variables["EVALUATE"]) == ("20", "2", "0")
    assert (variables["RUN_NAME"], variables["MICRO_BATCH"]) == ("mine", "1")
    assert manifests.variables(run())["STOP_AT"] == ""


# --- the preparation ---


def test_preparation_and_training_use_the_same_files() -> None:
    options = OlmoOptions.model_validate({"maxFiles": 2, "evaluate": False})
    spec = preparation.job_spec(options, image="olmo:1", upload_secret="up")["template"]["spec"]
    prepared = {entry["name"]: entry["value"] for entry in spec["containers"][0]["env"]}
    trained = manifests.variables(run(maxFiles=2, evaluate=False))
    assert prepared.items() >= {name: trained[name] for name in ("CONFIG", "MAX_FILES", "EVALUATE")}.items()
    shared = set(preparation.files().contents) & set(manifests.files(pool()).contents)
    assert shared == {"dataset.awk", "dataset.sh"}


def test_another_training_script_does_not_copy_again() -> None:
    assert "launch.sh" not in preparation.files().contents
    assert not [name for name in manifests.files(pool()).contents if name.startswith("prepare")]


@pytest.mark.parametrize(("address", "code"), [("s3://ai2-llm/part-0.npy", 0), ("r2://olmo-data/part-0.npy", 64)])
def test_checks_a_custom_images_config_without_a_gpu_node(tmp_path: Path, address: str, code: int) -> None:
    found = run()
    spec = preparation.check_spec(found)
    pod = spec["template"]["spec"]
    (checked,) = pod["containers"]
    assert (spec["backoffLimit"], pod["nodeSelector"]) == (0, {"kubernetes.azure.com/mode": "system"})
    assert "limits" not in checked["resources"]
    for name, text in manifests.files(found.pool).contents.items():
        (tmp_path / name).write_text(text)
    config = tmp_path / "config.yaml"
    config.write_text(f"data:\n  paths:\n    - {address}\n")
    env = {each["name"]: each["value"] for each in checked["env"]} | {"CONFIG": str(config), "PATH": os.environ["PATH"]}
    command = [*checked["command"][:-1], str(tmp_path / Path(checked["command"][-1]).name)]
    answer = subprocess.run(command, env=env, capture_output=True, text=True)
    assert answer.returncode == code, answer.stderr
    assert (f"{config}:3: {address}" in answer.stderr) == bool(code)
