from __future__ import annotations

from typing import Any

import pytest

from config.data.skus import VmSku, sku
from config.schema.pools import PoolSettings
from config.schema.workload import Candidate
from tests.support.case_files import read
from tests.support.pools import A100, candidate
from tests.support.sizes import H100, H200
from workloads._lib.training import usable_bytes
from workloads.metaseq.options import MetaseqOptions
from workloads.metaseq.plan import Unfit, bytes_per_gpu, dividing_nodes, plan, usable_nodes
from workloads.metaseq.problems import problems
from workloads.metaseq.sizes import models

TABLE = {size: each["plan"] for size, each in read(__file__, "metaseq_sizes").items()}
NAMES = [*TABLE]


def least_nodes(name: str, hardware: VmSku, *, micro_batch: int) -> tuple[int, int]:
    """Returns the fewest nodes with enough memory, and the fewest that divide the batch."""
    size = models().sizes[name]

    def fits(nodes: int) -> bool:
        need = bytes_per_gpu(size, gpus=nodes * hardware.gpus, micro_batch=micro_batch)
        return need <= usable_bytes(hardware.gpu_memory_gb)

    memory = next(nodes for nodes in range(1, 100) if fits(nodes))
    return memory, next(nodes for nodes in dividing_nodes(size, hardware) if nodes >= memory)


def placed(nodes: int, *, count: int = 2, vm_sku: str = H100) -> Candidate:
    pool = PoolSettings(vm_sku=H100, count=count).model_copy(update={"vm_sku": vm_sku})  # also one not supported yet
    return candidate(nodes=nodes, pool=pool, scratch=False)


@pytest.mark.parametrize(("name", "row"), TABLE.items(), ids=NAMES)
def test_parameters_and_fewest_nodes(name: str, row: dict[str, Any]) -> None:
    h100, size = sku(H100), models().sizes[name]
    assert models().parameters(size) / 1e9 == pytest.approx(row["parameters"], abs=5e-4)
    assert least_nodes(name, h100, micro_batch=1) == tuple(row["one"])
    assert least_nodes(name, h100, micro_batch=8) == tuple(row["eight"])
    assert usable_nodes(size, h100)[0] == row["one"][1]


@pytest.mark.parametrize(("name", "row"), TABLE.items(), ids=NAMES)
def test_node_counts_that_divide_the_batch(name: str, row: dict[str, Any]) -> None:
    size = models().sizes[name]
    assert models().sequences(size) == row["sequences"]
    assert 8 // size.model_parallel == row["groups"]
    powers_of_two = [2**power for power in range(11) if 2**power <= row["most_nodes"]]
    assert dividing_nodes(size, sku(H100)) == [nodes for nodes in powers_of_two if nodes <= 1000]  # AKS's most


@pytest.mark.parametrize(
    ("size", "nodes", "micro_batch", "expected"), [("13b", 1, 8, 61), ("30b", 1, 1, 56), ("66b", 2, 1, 54)]
)
def test_gigabytes_of_one_gpu(size: str, nodes: int, micro_batch: int, expected: float) -> None:
    found = bytes_per_gpu(models().sizes[size], gpus=8 * nodes, micro_batch=micro_batch)
    assert found / 1e9 == pytest.approx(expected, abs=0.5)


@pytest.mark.parametrize(
    ("vm_sku", "size", "nodes"),
    [
        (A100, "13b", (1, 1)), (A100, "30b", (2, 2)), (A100, "66b", (4, 4)), (A100, "175b", (10, 16)),
        (H200, "66b", (1, 1)), (H200, "175b", (3, 4)),
    ],
)  # fmt: skip
def test_other_gpus_have_other_memory(vm_sku: str, size: str, nodes: tuple[int, int]) -> None:
    assert least_nodes(size, sku(vm_sku), micro_batch=1) == nodes


@pytest.mark.parametrize("vm_sku", [H100, H200, A100])
@pytest.mark.parametrize("name", NAMES)
def test_every_plan_has_the_tables_batch_and_fits(name: str, vm_sku: str) -> None:
    hardware, size = sku(vm_sku), models().sizes[name]
    for nodes in usable_nodes(size, hardware):
        found = plan(size, hardware, nodes)
        sequences = found.data_parallel * found.micro_batch * found.update_freq
        assert sequences * models().sequence == size.batch
        need = bytes_per_gpu(size, gpus=found.gpus, micro_batch=found.micro_batch)
        assert need <= usable_bytes(hardware.gpu_memory_gb)


@pytest.mark.parametrize(
    ("size", "nodes", "micro_batch", "update_freq"),
    [("125m", 1, 64, 1), ("1.3b", 1, 32, 4), ("6.7b", 1, 16, 16), ("66b", 2, 4, 128), ("175b", 8, 4, 32)],
)
def test_the_micro_batch_is_the_largest_that_fits(size: str, nodes: int, micro_batch: int, update_freq: int) -> None:
    found = plan(models().sizes[size], sku(H100), nodes)
    assert (found.micro_batch, found.update_freq) == (micro_batch, update_freq)


def test_flops_count_weights_output_and_attention() -> None:
    """Megatron's formula without recomputation: 72 l h^2 (1 + s / 6h + V / 12lh) per token (Narayanan et al. 2021)."""
    size = models().sizes["175b"]
    layers, width = size.layers, size.width
    formula = 72 * layers * width**2 * (1 + 2048 / (6 * width) + 51200 / (12 * layers * width))
    assert plan(size, sku(H100), 8).flops_per_token == pytest.approx(formula)


@pytest.mark.parametrize("nodes", [3, 5, 6, 7])
@pytest.mark.parametrize("name", NAMES)
def test_rejects_three_five_six_or_seven_nodes(name: str, nodes: int) -> None:
    with pytest.raises(Unfit, match=rf"sequences that {nodes} nodes cannot share equally"):
        plan(models().sizes[name], sku(H100), nodes)


def test_the_fix_is_more_nodes_or_another_size_if_no_smaller_model_fits() -> None:
    nodes, pool = problems(MetaseqOptions(model_size="175b", num_nodes=3), placed(3, count=3))
    assert nodes.fix == "pulumi config set --path workloadOptions.metaseq.numNodes 8"
    assert (pool.what, pool.fix) == (
        "is 3, but workload metaseq needs 8 nodes",
        "pulumi config set nodeCount <value>",
    )
    four_gpus = placed(3, vm_sku="Standard_ND128isr_NDR_GB200_v6")
    (problem,) = problems(MetaseqOptions(model_size="175b", num_nodes=3), four_gpus)
    assert problem.fix == "pulumi config set vmSku <value>"
    assert "Standard_ND96asr_v4 ($27.20), Standard_ND96amsr_A100_v4 ($32.77)" in problem.allowed


@pytest.mark.parametrize("name", NAMES[:-1])
def test_two_nodes_train_every_size_but_the_largest(name: str) -> None:
    assert not [*problems(MetaseqOptions(model_size=name, num_nodes=2), placed(2))]


def test_model_parallel_groups_stay_within_a_node() -> None:
    four_gpus = sku("Standard_NC96ads_A100_v4")
    assert plan(models().sizes["2.7b"], four_gpus, 1).data_parallel == 1
    with pytest.raises(Unfit, match="needs 8 GPUs in one node, but Standard_NC96ads_A100_v4 has 4"):
        plan(models().sizes["66b"], four_gpus, 2)


def test_rejects_gpus_that_are_too_small() -> None:
    small = sku(H100).model_copy(update={"gpu_memory_gb": 8})
    with pytest.raises(Unfit, match="does not fit on any number of Standard_ND96isr_H100_v5"):
        plan(models().sizes["30b"], small, 1)
