"""Stacks that could answer no batch, and what they are told; by the settings' loader, on another stack's platform."""

from __future__ import annotations

from typing import Any

import pytest

import workloads
from config.problems.errors import SettingsError
from tests.support.pools import A100, H100, H200, T4
from tests.support.settings import load, platform

NAME = "batch-inference"
OPERATORS = {
    "scheduler": "scheduler-plugins-scheduler",
    "kueue": {"enabled": True},
    "appwrapper": {"enabled": True},
}
TEAMS: dict[str, Any] = {
    "blue": {"gpus": 8, "users": ["alice", "carol"]},
    "red": {"gpus": 2, "users": ["bob"], "borrowingLimit": 0},
    "green": {"gpus": 0, "users": ["dave"], "borrowingLimit": 0},
}
PLATFORM: dict[str, Any] = {
    "vmSku": H100,
    "nodeCount": 3,
    "operators": OPERATORS,
    "teams": TEAMS,
    "storage": {"sharedClass": "azurefile-csi"},
}
GOOD = {"team": "blue"}
GATED, LARGE, QWEN = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen2.5-72B-Instruct", "Qwen/Qwen2.5-7B-Instruct"


def told(options: dict[str, Any], *, encrypted: bool = True, **changes: Any) -> str:
    """What is said of the stack; empty where it is good. `changes` are of the platform; None takes a key away."""
    lent = {key: value for key, value in {**PLATFORM, **changes}.items() if value is not None}
    keys = {"platformStack": "teams", "workloads": NAME, "workloadOptions": {NAME: {**GOOD, **options}}}
    secrets = ("workloadOptions",) if encrypted else ()
    known = workloads.find()
    try:
        load(keys, name="mine", others={"teams": platform(lent, known)}, known=known, secret=secrets)
    except SettingsError as error:
        return str(error).replace("' ", " ")  # of paths that a shell needs them around
    return ""


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"user": "carol", "gpus": 8},
        {"model": GATED, "huggingFaceToken": "hf_abc"},
        {"model": LARGE, "gpus": 4},
        {"model": "nobody/knows-it", "gpus": 3, "inputLength": 500000},
        {"appWrapper": False},
        {"team": "red", "gpus": 2},
    ],
)
def test_what_can_run_is_taken(options: dict[str, Any]) -> None:
    assert told(options) == ""


@pytest.mark.parametrize(
    ("options", "what", "fix"),
    [
        ({"team": "bleu"}, "team is 'bleu', no team of the platform; near: blue", "team blue"),
        ({"user": "bob"}, "user is 'bob', no user of team blue", "user alice"),
        ({"queue": "fast"}, "queue is 'fast', a queue that team blue does not have", "queue default-queue"),
        ({"model": "granite 8b"}, "model is 'granite 8b'", "workloadOptions"),
        (
            {"model": "ibm-granite/granite-3.2-8b-instuct"},
            "granite-3.2-8b-instuct', which nobody knows; near: ibm-granite/granite-3.2-8b-instruct",
            "model ibm-granite/granite-3.2-8b-instruct",
        ),
        (
            {"model": GATED},
            f"huggingFaceToken is not set, and {GATED} is gated",
            "pulumi config set -s mine --secret --path",
        ),
        (
            {"model": LARGE},
            "which needs 147 GB of its GPU with 16 prompts at once, of 256 tokens with their answers",
            "gpus 4",
        ),
        ({"model": LARGE, "gpus": 2}, "each of 2 GPUs with 16 prompts", "gpus 4"),
        ({"model": LARGE, "gpus": 2}, "allowed: 4 GPUs; a pool of Standard_", "gpus 4"),
        (
            {"concurrency": 3000, "prompts": 9000},
            "prompts at once; 4 GPUs",
            "concurrency 1015",
        ),
        ({"model": QWEN, "gpus": 8}, "gpus is 8, and so many cannot share Qwen/Qwen2.5-7B-Instruct equally", "gpus 4"),
        ({"gpus": 3}, "allowed: 1 or 2 or 4 or 8", "gpus 2"),
        ({"gpus": 9}, "gpus is 9, more than a Standard_ND96isr_H100_v5 has", "gpus 8"),
        (
            {"inputLength": 140000},
            "is 140000: with the other, 128, it is more than ibm-granite/granite-3.2-8b-instruct can see",
            "inputLength 130944",
        ),
        ({"model": QWEN, "inputLength": 2000, "outputLength": 32000}, "outputLength is 32000", "outputLength 30768"),
        ({"team": "red", "gpus": 4}, "gpus is 4, and team red can have 2 at most", "gpus 2"),
        ({"team": "green"}, "teams.green.gpus of stack teams is 0, and it can borrow none", "teams.green.gpus 1"),
    ],
)
def test_wrong_options_say_what_is_right(options: dict[str, Any], what: str, fix: str) -> None:
    found = told(options)
    assert what in found
    assert fix in found


@pytest.mark.parametrize(
    ("options", "changes", "what", "fix"),
    [
        ({}, {"teams": None}, "teams of stack teams is not set", "operators.kueue.enabled true"),
        (
            {},
            {"operators": {**OPERATORS, "appwrapper": {}}},
            "appwrapper.enabled of stack teams is false, but workload batch-inference is wrapped",
            "operators.appwrapper.enabled true",
        ),
        (
            {},
            {"operators": {**OPERATORS, "scheduler": "volcano"}},
            "operators.scheduler of stack teams is volcano, and workload batch-inference has been tried with",
            "operators.scheduler scheduler-plugins-scheduler",
        ),
        (
            {},
            {"vmSku": None, "nodeCount": None, "pools": {"gpu": {"vmSku": H100, "gpuSlices": 2}}},
            "pools.gpu.gpuSlices of stack teams shares each GPU of pool gpu",
            'remove pools.gpu.gpuSlices, or set workloadOptions["batch-inference"].pool to a pool of whole GPUs',
        ),
        ({}, {"storage": None}, "storage.sharedClass of stack teams is not set", "storage.sharedClass azurefile-csi"),
        ({}, {"vmSku": T4, "nodeCount": 24}, "whose T4 has no bf16, in which workload batch-inference", "vmSku"),
    ],
)
def test_what_the_platform_lacks_is_mended_there(
    options: dict[str, Any], changes: dict[str, Any], what: str, fix: str
) -> None:
    found = told(options, **changes)
    assert what in found
    assert fix in found


def test_a_plain_job_needs_no_appwrapper() -> None:
    assert told({"appWrapper": False}, operators={**OPERATORS, "appwrapper": {}}) == ""


def test_on_other_gpus_a_model_may_fit() -> None:
    assert told({"model": LARGE, "gpus": 2}, vmSku=H200) == ""
    assert "8 GPUs" in told({"model": LARGE, "gpus": 2}, vmSku=A100)


def test_a_token_that_anybody_can_read_is_refused_and_not_shown() -> None:
    found = told({"model": GATED, "huggingFaceToken": "hf_abc"}, encrypted=False)
    assert "huggingFaceToken stands in the stack file as plain text" in found
    assert "hf_abc" not in found


def test_a_claim_without_room_for_the_weights_is_refused() -> None:
    said = told({"model": QWEN, "cacheGi": 5})
    assert "cacheGi is 5, and the weights of Qwen/Qwen2.5-7B-Instruct alone have 15 GiB" in said
    assert told({"model": QWEN, "cacheGi": 15}) == ""
    assert told({"model": "nobody/knows-it", "cacheGi": 1}) == ""
