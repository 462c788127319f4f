"""Stacks that could not run OLMo, and what they are told."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from config.data.skus import sku
from config.schema.pools import PoolSettings
from config.schema.storage import StorageSettings
from config.schema.translate import problems_of
from tests.support.case_files import read
from tests.support.pools import H100, H200, T4, ground
from workloads.olmo.configs import training_configs
from workloads.olmo.memory import micro_batch
from workloads.olmo.options import OlmoOptions
from workloads.olmo.problems import problems

CASES = read(__file__, "olmo_refusals")
CONTAINERS: dict[str, Any] = {
    "olmo-data": {"permissions": "rl", "profile": "random-4k", "upload": True},
    "olmo-checkpoints": {"permissions": "racwdlmp", "profile": "checkpoints"},
}
CHANGED = {"olmo-data": {}, "olmo-checkpoints": CONTAINERS["olmo-checkpoints"]}
"""What a case changes of a container is laid over these."""


def found(vm_sku: str = H100, nodes: int = 1, **case: Any) -> str:
    """What is said of a case."""
    changed = {
        name: each if each is None else {**CHANGED[name], **each} for name, each in case.get("containers", {}).items()
    }
    containers = {name: each for name, each in {**CONTAINERS, **changed}.items() if each is not None}
    pool = PoolSettings.model_validate({"vmSku": vm_sku, **case.get("pool", {})})
    storage = StorageSettings.model_validate({"containers": containers, **case.get("storage", {})})
    path, scratch = tuple(case.get("path", ())), case.get("scratch", True)
    where = ground(nodes=nodes, pool=pool, pool_path=path, storage=storage, scratch=scratch)
    return "\n".join(map(str, problems(OlmoOptions.model_validate(case.get("options", {})), where)))


@pytest.mark.parametrize(
    ("options", "what", "fix"),
    [
        ({"config": "OLMo2-7"}, "config is 'OLMo2-7', not one of OLMo's training configs", "config OLMo2-7B"),
        ({"config": "GPT-4"}, "OLMo-1B, OLMo-7B, OLMo-7B-0424, OLMo-7B-0724, OLMo2-1B, OLMo2-7B, OLMo2-13B", "change"),
        ({"stopAt": 0}, "workloadOptions.olmo.stopAt is 0", "pulumi config set --path workloadOptions.olmo.stopAt 1"),
        ({"runName": "a/b"}, "at most 63 letters, digits", "change workloadOptions.olmo.runName in the stack file"),
        ({"numNode": 2}, "numNode is an unknown key", "workloadOptions.olmo.numNodes 2"),
    ],
)
def test_wrong_options_say_what_is_right(options: dict[str, Any], what: str, fix: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        OlmoOptions.model_validate(options, by_alias=True, by_name=False)
    (problem,) = problems_of(refusal.value.errors(), OlmoOptions, options, ("workloadOptions", "olmo"))
    assert what in str(problem)
    assert fix in problem.fix


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.get("what", "good")[:60])
def test_what_stacks_are_told(case: dict[str, Any]) -> None:
    text = found(case.get("size", H100), **{key: value for key, value in case.items() if key != "size"})
    assert case.get("what", "") in text
    fixes = [line for line in text.splitlines() if line.strip().startswith("fix:")]
    assert any(case["fix"] in line for line in fixes) if "fix" in case else text == ""


def test_where_a_size_has_no_nvme_disks_none_are_to_be_used() -> None:
    assert "NVMe" not in found(T4, scratch=False)


@pytest.mark.parametrize("vm_sku", [H100, H200])
@pytest.mark.parametrize("config", [name for name in training_configs() if name != "OLMo2-13B"])
def test_every_other_config_has_the_memory_on_one_node(vm_sku: str, config: str) -> None:
    assert found(vm_sku, options={"config": config}) == ""


@pytest.mark.parametrize(
    ("config", "vm_sku", "nodes", "expected"),
    [
        ("OLMo-1B", H100, 1, 8),  # the config's own
        ("OLMo-1B", "Standard_ND96asr_v4", 1, 4),  # as many as 40 GB hold
        ("OLMo2-1B", H100, 32, 2),  # as many as 256 GPUs share
        ("OLMo2-13B", H100, 2, 1),
    ],
)
def test_micro_batches_are_the_most_that_the_gpus_share_and_hold(
    config: str, vm_sku: str, nodes: int, expected: int
) -> None:
    assert micro_batch(OlmoOptions(config=config), sku(vm_sku), nodes) == expected
    assert found(vm_sku, nodes, options={"config": config}) == ""
