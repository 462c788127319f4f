from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

import operators
from config.data.output_names import PLATFORM
from config.problems.errors import Problem, SettingsError
from config.problems.fixes import set_command
from config.reading.loader import Surroundings, load_settings
from config.rules.platform_stack import shared_settings
from config.schema.inventory import Inventory
from config.schema.models import Settings
from config.schema.names import StackName
from config.schema.workload import Candidate, GpuPods, Requirements, WorkloadCatalogue, WorkloadOptions, WorkloadSpec
from simulator.host.paths import ROOT
from workloads.nccl_allreduce.options import NcclAllreduceOptions

A100 = "Standard_NC24ads_A100_v4"
SECRET = ("workloadOptions",)


def dev() -> dict[str, Any]:
    config = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text("utf-8"))["config"]
    keys = {key.removeprefix("ai-on-aks:"): value for key, value in config.items() if key.startswith("ai-on-aks:")}
    keys["workloadOptions"]["jupyterlab"]["password"] = "open-sesame"
    return keys


class TrainingOptions(WorkloadOptions):
    num_nodes: int = 2


class NotebookOptions(WorkloadOptions):
    gpus: int = 1

    @property
    def gpus_per_node(self) -> int:
        return self.gpus


class SizedOptions(WorkloadOptions):
    model_size: Literal["small", "large"] = "small"


def too_large(options: Any, candidate: Candidate) -> Iterator[Problem]:
    if options.model_size == "large":
        path = ("workloadOptions", "sized", "modelSize")
        yield Problem(path, f"is large, too large for {candidate.pool_key}", "small", set_command(path, "small"))


def no_container(_options: Any, candidate: Candidate) -> Iterator[Problem]:
    if "data" not in candidate.storage.by_container():
        path = ("workloadOptions", "reader", "container")
        fix = set_command(("storage", "containers", "data", "permissions"), "rl")
        what = "is data, a container that the platform does not have"
        yield Problem(path, what, "one that it has", fix, lacking=("storage", "containers"))


@dataclass(frozen=True)
class Workload:
    name: str
    requires: Requirements
    options: type[WorkloadOptions] = WorkloadOptions
    keys: Mapping[str, str] = field(default_factory=dict)
    problem: Callable[[Any, Candidate], Iterable[Problem]] = lambda options, candidate: ()
    every_pool: bool = False

    @property
    def pods(self) -> GpuPods:
        return GpuPods(container=self.name)

    def nodes(self, options: WorkloadOptions, pool_nodes: int) -> int:
        return getattr(options, "num_nodes", None) or pool_nodes

    def problems(self, options: WorkloadOptions, candidate: Candidate) -> Iterable[Problem]:
        return self.problem(options, candidate)


WORKLOADS: dict[str, WorkloadSpec[Any]] = {
    workload.name: workload
    for workload in (
        Workload("nccl-allreduce", Requirements(mpi=True, infiniband=True), NcclAllreduceOptions),
        Workload("training", Requirements(), TrainingOptions),
        Workload("notebook", Requirements(), NotebookOptions),
        Workload("sized", Requirements(), SizedOptions, {"modelSize": "modelSize"}, too_large),
        Workload("reader", Requirements(), problem=no_container),
    )
}

INVENTORY = Inventory(operators.find(), WORKLOADS)


def as_engine(stack: Mapping[str, Any]) -> dict[str, str]:
    """Pulumi passes scalars as text, other values as JSON."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value)

    return {full_name(key): text(value) for key, value in stack.items()}


def full_name(key: str) -> str:
    return key if ":" in key else f"ai-on-aks:{key}"


def settings_with(stack: str = "test", **parts: Any) -> Settings:
    """Does not validate the settings."""
    return Settings(project="ai-on-aks", stack=stack, rdma_resource="nvidia.com/mlnxnics", **parts)


def load(
    stack: Mapping[str, Any],
    *,
    name: str = "dev",
    secret: tuple[str, ...] = (),
    others: Mapping[str, Mapping[str, Any]] | None = None,
    known: WorkloadCatalogue = WORKLOADS,
) -> Settings:
    """`others` has other stacks' outputs."""

    def outputs_of(stack: str) -> Mapping[str, Any]:
        found = {f"organization/ai-on-aks/{other}": outputs for other, outputs in (others or {}).items()}
        if stack not in found:
            raise LookupError(f'unknown stack "{stack}"')  # the engine's message
        return found[stack]

    here = StackName("organization", "ai-on-aks", name)
    around = Surroundings(stack=here, is_file=is_file, outputs_of=outputs_of)
    inventory = Inventory(INVENTORY.operators, known)
    return load_settings(as_engine(stack), around, inventory, secret_keys={f"ai-on-aks:{key}" for key in secret})


def problems(stack: Mapping[str, Any], **options: Any) -> list[Problem]:
    try:
        load(stack, **options)
    except SettingsError as error:
        return list(error.problems)
    return []


def platform(
    stack: Mapping[str, Any], known: WorkloadCatalogue = WORKLOADS, secret: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Returns this stack's outputs for consumer stacks, before deployment."""
    output = {
        "settings": shared_settings(load(stack, known=known, secret=secret)),
        "loginServer": "registry.azurecr.io",
    }
    return {PLATFORM: json.loads(json.dumps(output), parse_int=float)}  # the engine has only floats


def is_file(path: str) -> bool:
    return os.path.isfile(ROOT / path)  # noqa: PTH113 - as in the program: false for an invalid file name
