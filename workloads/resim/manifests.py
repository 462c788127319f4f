"""Builds the Jobs of batches, for the program and `python -m workloads.resim`."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from components.context import BlobVolume, GpuPool
from config.schema.overrides import merge
from workloads._lib import base as _base
from workloads._lib.files import Files, texts
from workloads._lib.indexed_job import batch_job_spec
from workloads._lib.mpi import MpiJob
from workloads._lib.pods import GpuPod, Manifest, blob, environment
from workloads.resim import metaseq
from workloads.resim.options import NAME, ResimOptions

TEMPLATES = f"{NAME}-templates"
OWNER = f"{NAME}-batches"
"""The ConfigMap that owns the Jobs of submitted batches, so that they are deleted with the stack."""
TEST_IO = "test-io"
BATCH_LABEL = "ai-on-aks/batch"
RUN_LABEL = "ai-on-aks/run"
DIGEST_ANNOTATION = "ai-on-aks/scenarios"
GRACE_S = 25
"""Grace period in seconds. Azure announces an eviction 30 seconds before it. The drain starts a little later."""
_INPUT, _OUTPUT = "/input", "/output"
_SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True, kw_only=True)
class Run(_base.Run[ResimOptions]):
    """The platform's pools and its input and output containers for batches."""

    others: tuple[GpuPool, ...]
    inputs: BlobVolume
    outputs: BlobVolume


@dataclass(frozen=True)
class Batch:
    """One run of a batch, with listed or numbered scenarios."""

    name: str
    run: int = 0
    """The run's number; 0 is the stack's own batch with numbered scenarios."""

    @property
    def job(self) -> str:
        return f"{self.name}-{self.run}" if self.run else self.name

    @property
    def labels(self) -> dict[str, str]:
        return {BATCH_LABEL: self.name, RUN_LABEL: str(self.run)}


@dataclass(frozen=True, kw_only=True)
class Load:
    """The program of a scenario and the hardware for it."""

    pools: Sequence[GpuPool]
    gpus: int | None
    """GPUs of a scenario; None takes a whole node."""
    image: str
    command: Sequence[str]
    files: Files
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def at_once(self) -> int:
        return max(1, sum(pool.max_nodes * (pool.gpus // (self.gpus or pool.gpus)) for pool in self.pools))


def files() -> Files:
    return Files(config_map=NAME, folder=f"/opt/{NAME}", contents=texts(_SCRIPTS, "run-scenario.sh"))


def load_of_options(run: Run) -> Load:
    options = run.options
    sizes = (str(options.gpu_seconds), str(options.output_files), options.output_size)
    command = options.command or ("/bin/bash", "/opt/test-io/test-io.sh", *sizes)
    return Load(pools=(run.pool, *run.others), gpus=options.gpus, image=run.image, command=command, files=files())


def load_of_training(options: ResimOptions, of_scenario: MpiJob) -> Load:
    outputs = {"OUTPUT_FILES": str(options.output_files), "OUTPUT_SIZE": options.output_size}
    found = metaseq.files(of_scenario, replace(files(), contents=texts(_SCRIPTS)))
    return Load(
        pools=(of_scenario.run.pool,),
        gpus=None,
        image=of_scenario.run.image,
        command=("/bin/bash", found.path("metaseq.sh")),
        files=found,
        variables={**replace(of_scenario, files=found).environment(), **outputs},
    )


def template(run: Run, load: Load) -> Manifest:
    options, (pool, *others) = run.options, load.pools
    fields = {"NAMESPACE": "metadata.namespace", "POD": "metadata.name", "NODE": "spec.nodeName"}
    pod = GpuPod(
        pool=pool,
        others=others,
        rdma_resource=run.rdma_resource,
        container={
            "name": NAME,
            "image": load.image,
            "command": ["/bin/bash", load.files.path("run-scenario.sh"), *load.command],
            "env": [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()],
        },
        variables={"INPUT": f"{_INPUT}/{options.dataset}".rstrip("/"), "OUTPUTS": _OUTPUT, **load.variables},
        mounts=[load.files.mount(), blob("input", run.inputs, _INPUT), blob("output", run.outputs, _OUTPUT)],
        gpus=load.gpus,
        node_check=run.node_check,
        spec={"terminationGracePeriodSeconds": GRACE_S},
        overrides=options.pod_overrides,
    )
    return pod.template()


def blueprint(run: Run, load: Load) -> Manifest:
    options = run.options
    return {
        "template": template(run, load),
        "parallelism": options.parallelism or load.at_once,
        "retries": options.retries,
        "mostFailedPercent": options.most_failed_percent,
        "enoughPercent": options.enough_percent,
        "hours": options.hours,
        "inputContainer": options.input_container,
        "outputContainer": options.output_container,
    }


def results_of(made_of: Mapping[str, Any]) -> str:
    """Returns a digest of what determines the outputs of a scenario: image, command, input container and path."""
    container = _container(made_of)
    decides = (container["image"], container["command"], _inputs(made_of), made_of["inputContainer"])
    return hashlib.sha256(json.dumps(decides).encode()).hexdigest()


def own_folder(made_of: Mapping[str, Any]) -> str:
    """Returns the folder of the stack's own batch. Its name contains the dataset, to separate results."""
    dataset = _inputs(made_of).removeprefix(_INPUT).strip("/")
    return f"{NAME}@{dataset.replace('/', '@')}" if dataset else NAME


def _container(made_of: Mapping[str, Any]) -> Manifest:
    found: Manifest = next(each for each in made_of["template"]["spec"]["containers"] if each["name"] == NAME)
    return found


def _inputs(made_of: Mapping[str, Any]) -> str:
    return str(next(each["value"] for each in _container(made_of)["env"] if each["name"] == "INPUT"))


def job_spec(made_of: Mapping[str, Any], batch: Batch, count: int) -> Manifest:
    variables = {
        "BATCH": batch.name if batch.run else own_folder(made_of),
        "LIST": f"runs/{batch.run}.txt" if batch.run else "",
    }
    container = {"name": NAME, "env": environment(variables)}
    labelled = {"metadata": {"labels": batch.labels}, "spec": {"containers": [container]}}
    return batch_job_spec(
        merge(made_of["template"], labelled),
        container=NAME,
        completions=count,
        parallelism=made_of["parallelism"],
        retries=made_of["retries"],
        activeDeadlineSeconds=made_of["hours"] * 3600,
        **_verdict(count, made_of["mostFailedPercent"], made_of["enoughPercent"]),
    )


def owner(uid: str) -> Manifest:
    """Returns the reference to the ConfigMap with this uid as owner, so that a Job is deleted with the stack.

    Without an owner, the deletion of a namespace would hang. Kubernetes would delete pods before their Jobs
    (pkg/controller/namespace/deletion/namespaced_resources_deleter.go, OrderedNamespaceDeletion). The Job controller
    keeps an interrupted pod until it creates the next pod of the same index (pkg/controller/job/job_controller.go,
    canRemoveFinalizer), which it cannot do in a namespace that is being deleted (Kubernetes 1.33.5).
    """
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": OWNER, "uid": uid}


def job(made_of: Mapping[str, Any], batch: Batch, count: int, *, namespace: str, digest: str, uid: str) -> Manifest:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": batch.job,
            "namespace": namespace,
            "labels": batch.labels,
            "annotations": {DIGEST_ANNOTATION: digest},
            "ownerReferences": [owner(uid)],
        },
        "spec": job_spec(made_of, batch, count),
    }


def _verdict(count: int, most_failed: int, enough: int) -> Manifest:
    """Returns the fields of a Job that stop the remaining scenarios early; empty if all scenarios must run."""
    found: Manifest = {}
    if most_failed < 100:
        found["maxFailedIndexes"] = count * most_failed // 100
    if enough < 100:
        found["successPolicy"] = {"rules": [{"succeededCount": math.ceil(count * enough / 100)}]}
    return found
