"""Stacks that could not fine-tune, and what they are told; by the settings' loader, on a platform of another stack."""

from __future__ import annotations

from typing import Any

import pytest

import workloads
from config.problems.errors import SettingsError
from tests.support.pools import H100, H200, T4
from tests.support.settings import load, platform

NAME = "ray-finetuning"
GATED = "meta-llama/Llama-3.1-8B"
OPERATORS = {"scheduler": "scheduler-plugins-scheduler", "kueue": {"enabled": True}, "kuberay": {"enabled": True}}
TEAMS: dict[str, Any] = {"blue": {"gpus": 8, "users": ["alice"]}, "red": {"gpus": 8, "users": ["bob"]}}
PLATFORM: dict[str, Any] = {
    "vmSku": H100,
    "nodeCount": 3,
    "operators": OPERATORS,
    "teams": TEAMS,
    "storage": {"sharedClass": "azurefile-csi", "containers": {"lines": {}, "out": {"permissions": "racwdlmp"}}},
}


def told(options: dict[str, Any], *, stack: str = "mine", secret: bool = False, **changes: Any) -> str:
    """What is said of the stack; empty where it is good. `changes` are of the platform; None takes a key away."""
    lent = {key: value for key, value in {**PLATFORM, **changes}.items() if value is not None}
    keys = {"platformStack": "teams", "workloads": NAME, "workloadOptions": {NAME: {"team": "blue", **options}}}
    known = workloads.find()
    hidden = ("workloadOptions",) if secret else ()
    try:
        load(keys, name=stack, others={"teams": platform(lent, known)}, known=known, secret=hidden)
    except SettingsError as error:
        return str(error).replace("' ", " ")  # of paths that a shell needs them around
    return ""


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gpus": 1},
        {"numNodes": 2},
        {"numNodes": 2, "gpus": 4},
        {"dataContainer": "lines", "checkpointContainer": "out"},
        {"dataContainer": "lines", "model": "/data/models/ours"},
        {"model": "ibm-granite/granite-3.2-8b-instruct", "longest": 8192},
        {"model": "somebody/something"},
        {"evaluation": 0},
        {"evaluation": 5000, "dataContainer": "lines"},
    ],
)
def test_what_can_run_is_taken(options: dict[str, Any]) -> None:
    assert told(options) == ""


@pytest.mark.parametrize(
    ("options", "what", "fix"),
    [
        ({"team": "bleu"}, "team is 'bleu', no team of the platform; near: blue", "team blue"),
        ({"model": "/checkpoints/a"}, "allowed: a name on Hugging Face's hub", "].model in the stack file"),
        ({"model": "/data/a"}, "is /data/a, a folder of dataContainer, which is not set", "model facebook/opt-1.3b"),
        ({"model": GATED}, "huggingFaceToken is not set, and meta-llama/Llama-3.1-8B is gated", "--secret"),
        ({"model": "meta-llama/Llama-3.1-8b"}, "which nobody knows; near: meta-llama/Llama-3.1-8B", f"model {GATED}"),
        ({"longest": 4096}, "is 4096 tokens, and facebook/opt-1.3b takes 2048 at once", "longest 2048"),
        ({"pack": 1024}, "is 2048 tokens, for which packs of 1024 have no room", "longest 1024"),
        ({"batch": 12}, "batch is 12 packs, which 8 GPUs cannot share equally", "batch 8"),
        ({"gpus": 9}, "gpus is 9, more than a Standard_ND96isr_H100_v5 has", "gpus 8"),
        ({"model": "facebook/opt-13b", "pack": 16384}, "packs of at most 8192 tokens", "pack 8192"),
        (
            {"evaluation": 2048},
            "evaluation is 2048, and without dataContainer there are 2048 examples",
            "evaluation 64",
        ),
        ({"rank": 0}, "rank is 0", "rank"),
        ({"dataContainer": "line"}, "is line, a container that the platform does not have; near: lines", "lines"),
        ({"checkpointContainer": "lines"}, "permissions of stack teams is rl, but workload", "racwdlmp"),
        ({"numNodes": 3}, "asks for 24 GPUs, and team blue can have 16 at most", "numNodes 2"),
    ],
)
def test_wrong_options_say_what_is_right(options: dict[str, Any], what: str, fix: str) -> None:
    found = told(options)
    assert what in found
    assert fix in next(line for line in found.splitlines() if line.strip().startswith("fix:"))


@pytest.mark.parametrize(
    ("changes", "what", "fix"),
    [
        ({"teams": None}, "teams of stack teams is not set", "operators.kueue.enabled true"),
        (
            {"operators": {**OPERATORS, "kuberay": {}}},
            "kuberay.enabled of stack teams is false, but workload ray-finetuning is a RayJob",
            "pulumi config set -s teams --path operators.kuberay.enabled true",
        ),
        (
            {"operators": {**OPERATORS, "scheduler": "volcano"}},
            "operators.scheduler of stack teams is volcano, and workload",
            "operators.scheduler scheduler-plugins-scheduler",
        ),
        ({"storage": None}, "has no class of shared files", "storage.sharedClass azurefile-csi"),
        ({"vmSku": T4, "nodeCount": 24}, "whose T4 has no bf16, in which workload ray-finetuning computes", "vmSku"),
        (
            {"vmSku": None, "nodeCount": None, "pools": {"gpu": {"vmSku": H100, "gpuSlices": 2}}},
            "pools.gpu.gpuSlices of stack teams shares each GPU of pool gpu",
            'remove pools.gpu.gpuSlices, or set workloadOptions["ray-finetuning"].pool to a pool of whole GPUs',
        ),
    ],
)
def test_what_the_platform_lacks_is_mended_there(changes: dict[str, Any], what: str, fix: str) -> None:
    found = told({"gpus": 4} if "pools" in changes else {}, **changes)
    assert what in found
    assert fix in found


def test_a_gated_model_needs_a_token_that_is_a_secret() -> None:
    options = {"model": GATED, "huggingFaceToken": "hf_something"}
    assert told(options, secret=True) == ""
    found = told(options)
    assert "stands in the stack file as plain text" in found
    assert "hf_something" not in found


def test_on_larger_gpus_it_fits_as_it_is() -> None:
    options = {"model": "facebook/opt-13b", "pack": 16384}
    assert "a pool of Standard_ND96isr_H200_v5" in told(options)
    assert told(options, vmSku=H200) == ""


@pytest.mark.parametrize("stack", ["a" * 33, "1st"])
def test_a_stacks_name_begins_that_of_a_rayjob(stack: str) -> None:
    """KubeRay refuses one of more than 47 characters."""
    assert "pulumi stack rename" in told({}, stack=stack)
