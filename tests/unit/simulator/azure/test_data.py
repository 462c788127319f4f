from __future__ import annotations

import importlib

import pytest

from config.data import skus
from config.data.versions import versions
from simulator.azure.resource_types import kinds
from simulator.azure.schema import FOLDER, Field, Schema, packages, schemas
from simulator.plugins.azure_native.resources import DEFINITIONS, Definition
from tests.support.arm import SUBSCRIPTION


def test_every_supported_kubernetes_version_has_a_patch() -> None:
    assert SUBSCRIPTION.kubernetes_patches.items() >= versions().kubernetes.newest.items()
    for minor, patch in SUBSCRIPTION.kubernetes_patches.items():
        assert SUBSCRIPTION.kubernetes(minor) == SUBSCRIPTION.kubernetes(patch) == patch
    assert SUBSCRIPTION.kubernetes("1.35.99") is None


def test_every_vm_family_has_a_quota_for_two_nodes() -> None:
    for sku in skus.catalogue().values():
        quota = SUBSCRIPTION.quota.get(sku.family, 0)
        assert quota >= 2 * sku.vcpus, f"{sku.name}: give {sku.family} a quota in simulator/azure/subscription.yaml"


def test_every_supported_family_with_gpus_is_offered_in_a_region() -> None:
    offered = {family for families in SUBSCRIPTION.regions.values() for family in families}
    assert {sku.family for sku in skus.catalogue().values() if sku.gpus and sku.supported} - offered == set()


def test_regions_offer_known_vm_families() -> None:
    families = {sku.family for sku in skus.catalogue().values()}
    assert all(set(offered) <= families for offered in SUBSCRIPTION.regions.values())


def test_every_package_has_a_schema_and_rules_of_one_type() -> None:
    folders = {file.name for file in FOLDER.iterdir() if file.is_dir() and file.name != "__pycache__"}
    assert folders == set(packages())
    for package, schema in packages().items():
        rules = importlib.import_module(f"simulator.azure.types.{package}.rules")
        assert kinds()[schema.type.lower()] is rules.KIND
        assert getattr(rules, "TYPE", schema.type) == schema.type


def test_types_are_unique() -> None:
    assert len({schema.type.lower() for schema in packages().values()}) == len({*DEFINITIONS}) == len(packages())


@pytest.mark.parametrize("schema", schemas().values(), ids=lambda schema: schema.type)
def test_immutable_properties_exist(schema: Schema) -> None:
    for path in schema.immutable:
        field: Field = schema.body
        for part in path.split("."):
            assert part in field.fields, path
            field = field.fields[part]
        assert not field.read_only


@pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=lambda definition: definition.sdk.token)
def test_the_plugin_and_arm_have_the_same_properties(definition: Definition) -> None:
    simulated = {path for path in definition.sdk.replaces if path.split(".")[0] in definition.inputs}
    for path in simulated:
        field = definition.inputs[path.split(".")[0]]
        assert "." not in path or path.split(".")[1] in field.fields, path
    assert definition.inputs.keys() - {"scope"} <= definition.outputs.keys()
