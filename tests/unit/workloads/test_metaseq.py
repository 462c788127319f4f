from __future__ import annotations

from typing import Any

import pytest

from tests.support.case_files import read
from tests.support.pools import place
from tests.support.sizes import H100
from workloads import find
from workloads.metaseq.manifests import Run, files, job
from workloads.metaseq.options import MetaseqOptions

TABLE = {size: tuple(each["command"].values()) for size, each in read(__file__, "metaseq_sizes").items()}
NODES = {"66b": 2, "175b": 8}


def run(size: str = "1.3b", vm_sku: str = H100, nodes: int | None = None, **options: Any) -> Run:
    return Run(
        options=MetaseqOptions(model_size=size, **options),
        service_account="mpi",
        **place(vm_sku, nodes or NODES.get(size, 1)),
    )


def command(run: Run) -> dict[str, str]:
    """Options without a value are empty."""
    found: dict[str, str] = {}
    for word in files(run).contents["arguments"].splitlines():
        if word.startswith("--"):
            assert word not in found, f"{word} is given twice"
            found[word] = ""
        else:
            found[list(found)[-1]] = word
    return found


@pytest.mark.parametrize("size", TABLE)
def test_the_command_line_has_the_tables_values(size: str) -> None:
    layers, width, heads, batch, rate, split, warmup, updates, end = TABLE[size]
    found = command(run(size))
    assert found["--decoder-layers"] == str(layers)
    assert found["--decoder-embed-dim"] == str(width)
    assert found["--decoder-ffn-embed-dim"] == str(4 * width)
    assert found["--decoder-attention-heads"] == str(heads)
    assert found["--model-parallel-size"] == str(split)
    assert (found["--lr"], found["--end-learning-rate"]) == (rate, end)
    assert found["--warmup-updates"] == str(warmup)
    assert found["--total-num-update"] == found["--max-update"] == str(updates)
    copies = 8 * NODES.get(size, 1) // split
    sequences = copies * int(found["--batch-size"]) * int(found["--update-freq"])
    assert sequences * int(found["--tokens-per-sample"]) == batch


def test_options_replace_derived_values() -> None:
    found = command(run(num_updates=20, warmup_updates=0))
    assert (found["--max-update"], found["--total-num-update"], found["--warmup-updates"]) == ("20", "20", "0")


def test_dashboards_are_off_by_default() -> None:
    assert not {"--aim-repo", "--tensorboard-logdir"} & set(command(run()))
    found = command(run(aim=True, tensorboard=True))
    assert found["--aim-repo"] == "/workspace/aim"
    assert found["--tensorboard-logdir"] == "/workspace/tensorboard"


def test_the_number_of_nodes_does_not_depend_on_the_pool() -> None:
    workload = find()["metaseq"]
    assert workload.nodes(MetaseqOptions(), pool_nodes=3) == 1
    assert workload.nodes(MetaseqOptions(num_nodes=2), pool_nodes=3) == 2
    assert workload.keys == {"modelSize": "modelSize"}


def test_another_size_changes_the_command_line_and_the_pods() -> None:
    def annotations(run: Run) -> list[Any]:
        return [task["template"]["metadata"]["annotations"] for task in job(run).spec()["tasks"]]

    small, large = run("1.3b"), run("6.7b")
    changed = {name for name, text in files(small).contents.items() if text != files(large).contents[name]}
    assert changed == {"arguments"}
    assert annotations(small) != annotations(large)
    assert annotations(small) == annotations(run("1.3b"))
