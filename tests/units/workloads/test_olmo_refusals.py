"""Stacks that could not run OLMo, and what they are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from config.facts.skus import sku
from config.schema.pools import PoolSettings
from config.schema.storage import ContainerSettings, StorageSettings
from config.schema.translate import problems_of
from config.schema.workload import Ground
from tests.support.pools import H100, H200, T4
from workloads.olmo.configs import training_configs
from workloads.olmo.memory import micro_batch
from workloads.olmo.options import OlmoOptions
from workloads.olmo.problems import problems

CONTAINERS = {
    "olmo-data": ContainerSettings(permissions="rl", profile="random-4k", upload=True),
    "olmo-checkpoints": ContainerSettings(permissions="racwdlmp", profile="checkpoints"),
}
STORAGE = {"containers": CONTAINERS}
IN_FILE = "in the stack file to what is allowed"


def ground(vm_sku: str = H100, nodes: int = 1, storage: Mapping[str, Any] = STORAGE, **changes: Any) -> Ground:
    settings = PoolSettings(vm_sku=vm_sku)
    facts = {"pool_key": "gpu", "pool": settings, "pool_path": (), "most_path": ("nodeCount",), "nodes": nodes}
    facts |= {"storage": StorageSettings.model_validate(storage), "shared_files": "smb", "scratch": True}
    facts |= {"pools": {"gpu": settings}}
    return Ground(**{**facts, **changes})


def found(where: Ground, **options: Any) -> str:
    return "\n".join(map(str, problems(OlmoOptions.model_validate(options), where)))


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


def test_nothing_is_wrong_with_the_defaults() -> None:
    assert found(ground()) == ""
    assert found(ground(nodes=2)) == ""


def test_a_missing_container_names_those_there_are() -> None:
    text = found(ground(), dataContainer="olmo-datum")
    assert "workloadOptions.olmo.dataContainer is olmo-datum, a container that the platform does not have" in text
    assert "olmo-data, olmo-checkpoints" in text
    assert "pulumi config set --path workloadOptions.olmo.dataContainer olmo-data" in text


def test_a_container_like_no_other_is_one_to_make() -> None:
    text = found(ground(), dataContainer="corpus")
    assert "pulumi config set --path storage.containers.corpus.permissions rl" in text
    left = {name: chosen for name, chosen in CONTAINERS.items() if name != "olmo-data"}
    text = found(ground(storage={"containers": left}))
    assert "pulumi config set --path 'storage.containers[\"olmo-data\"].permissions' rl" in text, "no data in others"


@pytest.mark.parametrize(
    ("name", "permissions", "lacks", "better"),
    [
        ("olmo-data", "l", "also needs r", "rl"),
        ("olmo-checkpoints", "rl", "also needs acwdmp", "racwdlmp"),
        ("olmo-checkpoints", "racwdl", "also needs mp", "racwdlmp"),
    ],
)
def test_a_sas_that_cannot_do_what_is_needed(name: str, permissions: str, lacks: str, better: str) -> None:
    container = CONTAINERS[name].model_copy(update={"permissions": permissions})
    text = found(ground(storage={"containers": {**CONTAINERS, name: container}}))
    assert lacks in text
    assert text.endswith(f"permissions' {better}")


def test_a_flat_namespace_needs_no_right_to_move_and_to_set_permissions() -> None:
    containers = {**CONTAINERS, "olmo-checkpoints": ContainerSettings(permissions="racwdl", profile="checkpoints")}
    assert found(ground(storage={"containers": containers, "hierarchicalNamespace": False})) == ""


def test_data_are_not_copied_by_an_identity() -> None:
    """The scripts know a SAS alone."""
    containers = {**CONTAINERS, "olmo-data": ContainerSettings()}
    where = ground(storage={"containers": containers, "auth": "identity"})
    text = found(where)
    assert "storage.auth is identity, but workload olmo copies its data by a SAS" in text
    assert text.endswith("pulumi config set --path storage.auth sas")
    assert found(where, prepare=False) == ""


@pytest.mark.parametrize("profile", ["sequential", "random-4k"])
def test_checkpoints_of_several_nodes_are_seen_at_once(profile: str) -> None:
    """Else the ranks of the other nodes end at the first checkpoint, before the first step."""
    containers = {**CONTAINERS, "olmo-checkpoints": ContainerSettings(permissions="racwdlmp", profile=profile)}
    text = found(ground(nodes=2, storage={"containers": containers}))
    assert f"""storage.containers["olmo-checkpoints"].profile is {profile}, under which a node does not see""" in text
    assert text.endswith("profile' checkpoints")
    alone = found(ground(nodes=1, storage={"containers": containers}))
    assert "does not see" not in alone, "one node has one mount"


def test_checkpoints_are_larger_than_a_file_of_small_blocks_can_be() -> None:
    containers = {**CONTAINERS, "olmo-checkpoints": ContainerSettings(permissions="racwdlmp", profile="random-4k")}
    text = found(ground(nodes=1, storage={"containers": containers}))
    assert "is random-4k, by which no file can be larger than 195 MiB, and workload olmo saves there" in text
    assert text.endswith("profile' checkpoints")


def test_preparation_needs_a_sas_that_writes() -> None:
    containers = {**CONTAINERS, "olmo-data": ContainerSettings(permissions="rl")}
    assert "upload' true" in found(ground(storage={"containers": containers}))
    assert found(ground(storage={"containers": containers}), prepare=False) == ""


def test_scratch_is_needed() -> None:
    assert "NVMe" not in found(ground(T4, scratch=False)), "there are no such disks to be used"
    assert "pulumi config set --path operators.localNvmeScratch.enabled true" in found(ground(scratch=False))
    off = PoolSettings(vm_sku=H100, local_nvme_scratch=False)
    text = found(ground(pool=off, pool_path=("pools", "h"), scratch=False))
    assert text.endswith("pulumi config set --path pools.h.localNvmeScratch true")


def test_a_gpu_without_bf16_is_refused() -> None:
    assert "vmSku is Standard_NC4as_T4_v3, whose T4 has no bf16" in found(ground(T4))
    assert found(ground(T4)).endswith("change vmSku " + IN_FILE)
    assert found(ground(T4, pool_path=("pools", "a"))).endswith(
        "change pools.a.vmSku in the stack file to what is allowed"
    )


def test_a_model_that_no_gpu_of_the_node_can_hold() -> None:
    text = found(ground("Standard_NC24ads_A100_v4"), config="OLMo-7B")
    assert "where OLMo-7B in micro-batches of 1 would take 124 GB on each GPU of 1 node, of whose 80 GB 72" in text
    assert "Standard_NC96ads_A100_v4" in text, "four such GPUs share it"
    assert text.endswith("change vmSku " + IN_FILE)
    assert found(ground("Standard_NC24ads_A100_v4"), config="OLMo-1B") == ""
    assert found(ground("Standard_NC96ads_A100_v4"), config="OLMo-7B") == ""


def test_nodes_without_infiniband_do_not_share_a_model() -> None:
    text = found(ground("Standard_NC24ads_A100_v4", nodes=2), config="OLMo-7B")
    assert "would take 124 GB on each GPU of 1 node" in text
    assert "pulumi config set --path workloadOptions.olmo.numNodes 1" in text


def test_what_ai2_trained_13b_with_fits_and_its_config_as_it_stands_does_not() -> None:
    """Micro-batches of 1 (scripts/beaker/peteish/peteish13-medlr.sh of OLMo), or every other layer computed again."""
    text = found(ground(nodes=64), config="OLMo2-13B", microBatch=2)
    assert "OLMo2-13B in micro-batches of 2 would take 109 GB on each GPU of 64 nodes, of whose 80 GB 72 can" in text
    assert text.endswith("pulumi config set --path workloadOptions.olmo.microBatch 1")
    assert found(ground(nodes=64), config="OLMo2-13B") == ""


def test_a_model_too_large_for_its_nodes_says_how_many_it_needs() -> None:
    text = found(ground(), config="OLMo2-13B")
    assert "numNodes is 1: OLMo2-13B in micro-batches of 1 would take" in text
    assert "pulumi config set --path workloadOptions.olmo.numNodes 2" in text
    only = PoolSettings(vm_sku=H100, count=1)
    assert found(ground(pool=only), config="OLMo2-13B").endswith(
        "change nodeCount in the stack file to what is allowed"
    )
    assert found(ground(nodes=2), config="OLMo2-13B") == ""


@pytest.mark.parametrize("vm_sku", [H100, H200])
@pytest.mark.parametrize("config", [name for name in training_configs() if name != "OLMo2-13B"])
def test_every_other_config_has_the_memory_on_one_node(vm_sku: str, config: str) -> None:
    assert found(ground(vm_sku), config=config) == ""


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
    assert found(ground(vm_sku, nodes=nodes), config=config) == ""


def test_several_nodes_need_infiniband() -> None:
    assert "have no InfiniBand between them" in found(ground("Standard_NC96ads_A100_v4", nodes=2))


def test_a_batch_that_does_not_divide_says_what_does() -> None:
    text = found(ground(nodes=3), config="OLMo2-1B")
    assert "3 nodes of 8 GPUs cannot share OLMo2-1B's batch of 512 sequences in micro-batches of 4" in text
    assert "numNodes 1, 2, 4, 8, 16" in text
    assert text.endswith("pulumi config set --path workloadOptions.olmo.numNodes 2")


def test_a_micro_batch_that_is_too_large_gives_way() -> None:
    text = found(ground(nodes=32), config="OLMo2-1B", microBatch=4)
    assert "with 32 nodes: microBatch 2" in text
    assert text.endswith("pulumi config set --path workloadOptions.olmo.microBatch 2")
    assert found(ground(nodes=32), config="OLMo2-1B", microBatch=2) == ""
