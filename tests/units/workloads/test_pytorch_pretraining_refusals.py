"""Stacks that could not pre-train, and what they are told; by the settings' loader, on a platform of another stack."""

from __future__ import annotations

from typing import Any

import pytest

import workloads
from config.problems.errors import SettingsError
from tests.support.pools import A100, H100, H200, T4
from tests.support.settings import load, platform

NAME = "pytorch-pretraining"
OPERATORS = {
    "scheduler": "scheduler-plugins-scheduler",
    "kueue": {"enabled": True},
    "appwrapper": {"enabled": True},
    "trainingOperator": {"enabled": True},
}
TEAMS: dict[str, Any] = {
    "blue": {"gpus": 8, "users": ["alice", "carol"]},
    "red": {"gpus": 8, "users": ["bob"]},
    "green": {"gpus": 0, "groups": ["0a0b0c0d-0000-0000-0000-000000000000"]},
}
PLATFORM: dict[str, Any] = {
    "vmSku": H100,
    "nodeCount": 3,
    "operators": OPERATORS,
    "teams": TEAMS,
    "slackGpus": 8,
    "storage": {"sharedClass": "azurefile-csi", "containers": {"tokens": {}, "out": {"permissions": "racwdlmp"}}},
}
GOOD = {"team": "blue", "modelSize": "1.3b", "steps": 20}


def told(options: dict[str, Any], stack: str = "mine", **changes: Any) -> str:
    """What is said of the stack; empty where it is good. `changes` are of the platform; None takes a key away."""
    lent = {key: value for key, value in {**PLATFORM, **changes}.items() if value is not None}
    keys = {"platformStack": "teams", "workloads": NAME, "workloadOptions": {NAME: {**GOOD, **options}}}
    known = workloads.find()
    try:
        load(keys, name=stack, others={"teams": platform(lent, known)}, known=known)
    except SettingsError as error:
        return str(error).replace("' ", " ")  # of paths that a shell needs them around
    return ""


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"user": "carol"},
        {"gpus": 4},
        {"team": "red", "fp8": True},
        {"dataContainer": "tokens", "checkpointContainer": "out"},
        {"appWrapper": False},
    ],
)
def test_what_can_run_is_taken(options: dict[str, Any]) -> None:
    assert told(options) == ""


@pytest.mark.parametrize(
    ("options", "what", "fix"),
    [
        ({"team": ""}, "team is not set", "team blue"),
        ({"team": "bleu"}, "team is 'bleu', no team of the platform; near: blue", "team blue"),
        ({"user": "alcie"}, "user is 'alcie', no user of team blue; near: alice", "user alice"),
        ({"user": "bob"}, "user is 'bob', no user of team blue", "user alice"),
        ({"queue": "fast"}, "queue is 'fast', a queue that team blue does not have", "queue default-queue"),
        ({"team": "green", "gpus": 8}, "users of stack teams is not set, and the workload is made as a user", "alice"),
        ({"modelSize": "2.8b"}, "modelSize is '2.8b', an unknown model size; near: 2.7b", "modelSize 2.7b"),
        ({"batch": 12}, "batch is 12 sequences, which 8 GPUs cannot share equally", "batch 8"),
        ({"batch": 100}, "allowed: 96 or 104", "batch 96"),
        ({"gpus": 9}, "gpus is 9, more than a Standard_ND96isr_H100_v5 has", "gpus 8"),
        ({"modelSize": "66b"}, "needs 144 GB of each of 8 GPUs with one sequence of 2048 tokens", "modelSize 30b"),
        ({"modelSize": "6.7b", "gpus": 1}, "allowed: 2 GPUs of each node; a model of 125m", "gpus 2"),
        ({"modelSize": "6.7b", "gpus": 1, "sequence": 4096}, "needs 122 GB of each of 1 GPUs", "gpus 2"),
        ({"modelSize": "6.7b", "sequence": 131072}, "sequences of at most 65536", "sequence 65536"),
        ({"dataContainer": "token"}, "is token, a container that the platform does not have; near: tokens", "tokens"),
        ({"checkpointContainer": "tokens"}, "permissions of stack teams is rl, but workload", "racwdlmp"),
    ],
)
def test_wrong_options_say_what_is_right(options: dict[str, Any], what: str, fix: str) -> None:
    found = told(options)
    assert what in found
    assert fix in next(line for line in found.splitlines() if line.strip().startswith("fix:"))


@pytest.mark.parametrize(
    ("options", "changes", "what", "fix"),
    [
        ({}, {"teams": None, "slackGpus": None}, "teams of stack teams is not set", "operators.kueue.enabled true"),
        (
            {},
            {"operators": {**OPERATORS, "trainingOperator": {}}},
            "trainingOperator.enabled of stack teams is false, but workload pytorch-pretraining is a PyTorchJob",
            "pulumi config set -s teams --path operators.trainingOperator.enabled true",
        ),
        (
            {},
            {"operators": {**OPERATORS, "appwrapper": {}}},
            "appwrapper.enabled of stack teams is false, but workload pytorch-pretraining is wrapped",
            "operators.appwrapper.enabled true",
        ),
        (
            {},
            {"operators": {**OPERATORS, "scheduler": "volcano"}},
            "operators.scheduler of stack teams is volcano, and workload",
            "operators.scheduler scheduler-plugins-scheduler",
        ),
        (
            {"gpus": 4},
            {"vmSku": None, "nodeCount": None, "pools": {"gpu": {"vmSku": H100, "gpuSlices": 2}}},
            "pools.gpu.gpuSlices of stack teams shares each GPU of pool gpu",
            'remove pools.gpu.gpuSlices, or set workloadOptions["pytorch-pretraining"].pool to a pool of whole GPUs',
        ),
        ({}, {"storage": None}, "has no class of shared files", "storage.sharedClass azurefile-csi"),
        ({"numNodes": 2}, {}, "pinsMemory of stack teams is false", "teams.blue.pinsMemory true"),
        ({"fp8": True}, {"vmSku": A100}, "fp8 is true, and A100 multiplies nothing in FP8", "fp8 false"),
        (
            {},
            {"vmSku": T4, "nodeCount": 24},
            "whose T4 has no bf16, in which workload pytorch-pretraining computes",
            "vmSku",
        ),
        (
            {"dataContainer": "tokens"},
            {"storage": {**PLATFORM["storage"], "auth": "identity"}},
            "auth of stack teams is identity, which opens containers in a stack's own namespace",
            "storage.auth sas",
        ),
    ],
)
def test_what_the_platform_lacks_is_mended_there(
    options: dict[str, Any], changes: dict[str, Any], what: str, fix: str
) -> None:
    found = told(options, **changes)
    assert what in found
    assert fix in found


def test_more_than_the_team_and_what_others_lend_it_is_refused() -> None:
    pins = {**TEAMS, "blue": {**TEAMS["blue"], "pinsMemory": True}}
    assert told({"numNodes": 3, "batch": 24}, teams=pins) == "", "its own, red's and the slack"
    keeps = {**pins, "red": {**TEAMS["red"], "lendingLimit": 0}}
    found = told({"numNodes": 3, "batch": 24}, teams=keeps)
    assert "asks for 24 GPUs, and team blue can have 16 at most: 8 of its own, the rest borrowed" in found
    assert "numNodes 2" in found
    bound = {**pins, "blue": {**pins["blue"], "borrowingLimit": 0}}
    assert "team blue can have 8 at most" in told({"numNodes": 2}, teams=bound)


def test_on_other_gpus_a_model_may_fit() -> None:
    assert f"a pool of {H200}" in told({"modelSize": "6.7b", "gpus": 1})
    assert told({"modelSize": "6.7b", "gpus": 1}, vmSku=H200) == ""


def test_nodes_without_infiniband_do_not_train_together() -> None:
    found = told({"numNodes": 2, "modelSize": "125m"}, vmSku="Standard_NC40ads_H100_v5", nodeCount=24)
    assert "nodes of Standard_NC40ads_H100_v5 have no InfiniBand between them" in found
    assert "numNodes 1" in found


def test_part_of_a_node_has_no_infiniband() -> None:
    pins = {**TEAMS, "blue": {**TEAMS["blue"], "pinsMemory": True}}
    assert "gpus is 4, but a job of 2 nodes takes whole ones" in told({"numNodes": 2, "gpus": 4}, teams=pins)


def test_a_platform_of_ones_own_is_not_where_it_runs() -> None:
    known = workloads.find()
    with pytest.raises(SettingsError, match="platformStack is not set, and workload pytorch-pretraining is made as"):
        load({**PLATFORM, "workloads": NAME, "workloadOptions": {NAME: GOOD}}, known=known)


@pytest.mark.parametrize("stack", ["a" * 40, "1st"])
def test_a_stacks_name_begins_those_of_pods(stack: str) -> None:
    assert "pulumi stack rename" in told({}, stack)
