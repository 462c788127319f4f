from __future__ import annotations

import json
from typing import Any

import pytest

from simulator.plugins.azure_native.resources import DEFINITIONS
from simulator.plugins.schema import schema

Spec = dict[str, Any]
JOB = "kubernetes:batch/v1:Job"


@pytest.fixture(scope="module")
def azure() -> Spec:
    found: Spec = json.loads(schema("azure-native", "3.29.0", DEFINITIONS))
    return found


@pytest.fixture(scope="module")
def kubernetes() -> Spec:
    found: Spec = json.loads(schema("kubernetes", "4.34.2", [JOB, "kubernetes:rbac.authorization.k8s.io/v1:Role"]))
    return found


@pytest.mark.parametrize("token", DEFINITIONS)
def test_every_input_has_a_type(azure: Spec, token: str) -> None:
    definition = DEFINITIONS[token]
    assert {*definition.inputs, *definition.parameters} <= set(azure["resources"][token]["inputProperties"])


def test_types_of_azure_properties(azure: Spec) -> None:
    pool = azure["resources"]["azure-native:containerservice:AgentPool"]
    inputs, types = pool["inputProperties"], azure["types"]
    assert inputs["vmSize"] == {"type": "string"}
    assert inputs["count"] == {"type": "integer"}
    assert inputs["nodeTaints"] == {"type": "array", "items": {"type": "string"}}
    assert inputs["tags"] == {"type": "object", "additionalProperties": {"type": "string"}}
    assert inputs["mode"] == {"type": "string"}, "an enumeration of texts"
    assert inputs["gpuProfile"] == {"$ref": "#/types/azure-native:containerservice:GPUProfile"}
    assert set(types["azure-native:containerservice:GPUProfile"]["properties"]) == {"driver"}
    assert pool["requiredInputs"] == ["resourceGroupName", "resourceName"]


def test_types_refer_to_other_types(kubernetes: Spec) -> None:
    job = kubernetes["resources"][JOB]["inputProperties"]
    assert job["spec"] == {"$ref": "#/types/kubernetes:batch/v1:JobSpec"}
    assert kubernetes["types"]["kubernetes:batch/v1:JobSpec"]["required"] == ["template"]
    port = kubernetes["types"]["kubernetes:core/v1:HTTPGetAction"]["properties"]["port"]
    assert port == {"oneOf": [{"type": "integer"}, {"type": "string"}]}


def test_maps_modules_to_the_python_package(kubernetes: Spec) -> None:
    assert kubernetes["language"]["python"]["moduleNameOverrides"] == {
        "batch/v1": "batch/v1",
        "rbac.authorization.k8s.io/v1": "rbac/v1",
    }


def test_every_reference_exists(azure: Spec, kubernetes: Spec) -> None:
    for package in (azure, kubernetes):
        assert references(package) <= {f"#/types/{token}" for token in package["types"]} | {"pulumi.json#/Any"}


def references(spec: Any) -> set[str]:
    if isinstance(spec, dict):
        own = {spec["$ref"]} if isinstance(spec.get("$ref"), str) else set()
        return own.union(*map(references, spec.values()))
    return set().union(*map(references, spec)) if isinstance(spec, list) else set()
