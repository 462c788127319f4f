from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

from components.azure.azure_resources import _explainer, tagged
from simulator.azure.schema import schemas
from tests.support.golden import STACKS
from tests.support.mocked_azure import Azure
from tests.support.mocks import Recorder, Registered, program
from tests.support.settings import load, platform
from tests.support.sizes import H100, T4

TAGS = {"CostCenter": "4711", "Owner": "platform@contoso.example"}
TAKE_TAGS = {schema.sdk.token.rpartition(":")[2] for schema in schemas().values() if "tags" in schema.body.flat}


def azure(recorder: Recorder) -> list[Registered]:
    return [each for each in recorder.registered if each.type.startswith("azure-native:")]


def takes_tags(resource: Registered) -> bool:
    return resource.type.rpartition(":")[2] in TAKE_TAGS


@pytest.mark.parametrize("stack", ["private-outside", "two-accounts", "shared-files", "autoscale"])
def test_all_resources_with_tags_get_those_of_the_stack(stack: str) -> None:
    found = azure(program({**STACKS[stack], "tags": TAGS}, Azure(inside=stack != "private-outside")))
    without = [each for each in found if takes_tags(each) and not TAGS.items() <= each.inputs.get("tags", {}).items()]
    assert [each.name for each in without] == []
    (cluster,) = (each for each in found if each.type.endswith(":ManagedCluster"))
    assert [pool["tags"] for pool in cluster.inputs["agentPoolProfiles"]] == [TAGS]


def test_keeps_tags_of_the_program() -> None:
    found = azure(program({**STACKS["autoscale"], "tags": TAGS}))
    (pool,) = (each for each in found if each.type.endswith(":AgentPool"))
    assert len(pool.inputs["tags"]) == len(TAGS) + 1


def test_does_not_add_missing_tags() -> None:
    assert tagged({"tags": None, "location": "eastus"}, {}) == {"tags": None, "location": "eastus"}
    assert tagged({"location": "eastus"}, TAGS) == {"location": "eastus"}


CONSTRAINED = (
    'Status=200 Code="OverconstrainedAllocationRequest" Message="Allocation failed. VM(s) with the following '
    "constraints cannot be allocated, because the condition is too restrictive. Please remove some constraints and try "
    'again. Constraints applied are:\n  - Differencing (Ephemeral) Disks\n  - VM Size\n"'
)


MISSING_TAG = json.dumps(
    {
        "code": "RequestDisallowedByPolicy",
        "info": {"evaluatedExpressions": [{"expression": "tags[cost.center]", "result": "False"}]},
    }
)


@pytest.mark.parametrize(
    ("settings", "resource", "error", "fix"),
    [
        (
            {"pools": {"h100": {"vmSku": H100, "osDiskGb": 256}}},
            "pool-h100",
            CONSTRAINED,
            "pools.h100.osDiskType Managed",
        ),
        ({"vmSku": H100}, "pool-gpu", CONSTRAINED, f"pools.gpu.vmSku {H100} && "),
        ({"vmSku": T4}, "resource-group", MISSING_TAG, """'tags["cost.center"]' '<value>'"""),
    ],
    ids=["a pool", "the default pool becomes one of the pools", "a missing tag"],
)
def test_explains_errors_with_commands_for_the_resource(
    settings: dict[str, Any], resource: str, error: str, fix: str, warnings: list[str]
) -> None:
    hook = _explainer(load(settings))
    args = pulumi.ErrorHookArgs(urn=f"urn::{resource}", id="", name=resource, type="", errors=[error])
    assert [hook(args), hook(args)] == [False, False]
    (warning,) = warnings
    assert f"pulumi config set -s dev --path {fix}" in warning


def test_does_not_explain_unknown_errors(warnings: list[str]) -> None:
    hook = _explainer(load({"vmSku": T4}))
    assert hook(pulumi.ErrorHookArgs(urn="", id="", name="x", type="", errors=["no such thing"])) is False
    assert warnings == []


def test_each_azure_resource_has_the_error_hook() -> None:
    found = program({**STACKS["autoscale"]})
    hooked = {each.name for each in found.registered if "explain-azure-error" in each.request.hooks.on_error}
    assert hooked == {each.name for each in azure(found)}


@pytest.mark.parametrize(
    ("own", "tags"), [({}, {"CostCenter": "4711"}), ({"tags": {"CostCenter": "4712"}}, {"CostCenter": "4712"})]
)
def test_a_consumer_stack_has_its_own_tags_or_those_of_the_platform(own: dict[str, Any], tags: dict[str, str]) -> None:
    others = {"prod": platform({"vmSku": H100, "tags": {"CostCenter": "4711"}})}
    assert load({"platformStack": "prod", "workloads": [], **own}, others=others).tags == tags


def test_tags_do_not_leak_into_the_next_program() -> None:
    program({**STACKS["no-nodes"], "tags": TAGS})
    (group,) = (each for each in azure(program(STACKS["no-nodes"])) if each.type.endswith(":ResourceGroup"))
    assert "tags" not in group.inputs
