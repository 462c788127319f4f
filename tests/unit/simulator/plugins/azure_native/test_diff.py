"""pulumi-azure-native's rules are in provider/pkg/provider/diff.go and in Diff of provider.go."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2

from simulator.plugins.azure_native.resources import DEFINITIONS
from simulator.plugins.marshal import UNKNOWN, Properties
from tests.support.azure_plugin import CLUSTER, GROUP, INPUTS, POOL, AzurePlugin, cluster_inputs, pool_inputs
from tests.support.case_files import case_table, read

CASES = read(__file__, "diff")
Kind = provider_pb2.PropertyDiff
NONE, SOME = provider_pb2.DiffResponse.DIFF_NONE, provider_pb2.DiffResponse.DIFF_SOME


@case_table(__file__, "same")
def test_finds_no_change(plugin: AzurePlugin, old: Properties, new: Properties) -> None:
    for olds, news in ((old, new), (new, old)):
        assert plugin.diff(CLUSTER, cluster_inputs(**olds), cluster_inputs(**news)).changes == NONE


@pytest.mark.parametrize("case", CASES["changes"])
def test_finds_changes_and_replacements(plugin: AzurePlugin, case: dict[str, Any]) -> None:
    token, base = INPUTS[case["kind"]]
    new = {name: UNKNOWN if value == "<unknown>" else value for name, value in case["new"].items()}
    answer = plugin.diff(token, base | case["old"], base | case["old"] | new)
    kinds = {path: Kind.Kind.Name(change.kind) for path, change in answer.detailedDiff.items()}
    assert case["found"].items() <= kinds.items()
    assert "more" in case or kinds == case["found"]
    replacing = sorted(path for path, kind in kinds.items() if kind.endswith("_REPLACE"))
    assert list(answer.replaces) == replacing
    assert answer.deleteBeforeReplace == bool(replacing)
    assert answer.changes == (SOME if kinds else NONE)
    assert {path.partition(".")[0] for path in case["found"]} <= set(answer.diffs)


def test_a_random_name_allows_creation_before_deletion(plugin: AzurePlugin) -> None:
    olds = {"resourceGroupName": "ai1234", "location": "eastus", "__createBeforeDelete": True}
    answer = plugin.diff(GROUP, olds, olds | {"location": "westus3"})
    assert list(answer.replaces) == ["location"]
    assert not answer.deleteBeforeReplace


@pytest.mark.parametrize(("shown", "kind"), [({"gpuInstanceProfile": "MIG1g"}, Kind.ADD), ({}, Kind.ADD_REPLACE)])
def test_a_value_that_azure_already_has_does_not_replace(plugin: AzurePlugin, shown: Properties, kind: int) -> None:
    news = pool_inputs(gpuInstanceProfile="MIG1g")
    answer = plugin.diff(POOL, pool_inputs(), news, state=pool_inputs(**shown))
    assert answer.detailedDiff["gpuInstanceProfile"].kind == kind
    assert list(answer.replaces) == ([] if shown else ["gpuInstanceProfile"])


def test_an_import_has_the_api_version_of_the_state(plugin: AzurePlugin) -> None:
    version = {"azureApiVersion": DEFINITIONS[GROUP].api_version}
    olds = {"resourceGroupName": "rg", "location": "eastus"}
    for state, changes in ((olds | version, NONE), (olds, SOME), (olds | {"azureApiVersion": "2020-10-01"}, SOME)):
        assert plugin.diff(GROUP, olds, olds | version, state=state).changes == changes
