from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from simulator.kube.client import KubeClient
from tests.contract.conformance.conftest import NewStack, Rows
from tests.contract.conformance.stack import ConformanceStack
from tests.support.plugin_stack import Result

pytestmark = pytest.mark.conformance
SECTION = "Failures"
Made = TypeVar("Made")

AT_ONCE = """
import re

def config_map(name, metadata, **options):
    k8s.core.v1.ConfigMap(name, metadata={"namespace": values["namespace"]} | metadata,
        opts=pulumi.ResourceOptions(provider=provider, **options))

config_map("exists", {"name": "exists"})
config_map("invalid", {"name": "Not A Name"})
k8s.helm.v3.Release("schema", name="schema", chart=values["chart"], namespace=values["namespace"],
    values={"size": "big", "bogus": 1}, opts=options)
text = re.sub("server: .*", "server: https://127.0.0.1:1", os.environ["KUBECONFIG_TEXT"])
dead = k8s.Provider("dead", kubeconfig=pulumi.Output.secret(text), cluster_identifier="y")
k8s.core.v1.ConfigMap("unreachable", metadata={"namespace": "default"}, opts=pulumi.ResourceOptions(provider=dead))
"""
AFTER_RETRIES = """
k8s.apiextensions.CustomResource("thing", api_version="missing.test/v1", kind="Thing",
    metadata={"namespace": values["namespace"], "name": "x"}, opts=options)
k8s.core.v1.ConfigMap("nowhere", metadata={"namespace": "nowhere", "name": "x"}, opts=options)
"""
RETRIES_SECONDS = 1 + 2 + 4 + 8 + 16 + 32


def timed(call: Callable[..., Made], *arguments: Any) -> tuple[Made, float]:
    started = time.monotonic()
    return call(*arguments), time.monotonic() - started


def up_to_the_end(stack: ConformanceStack) -> Result:
    return stack.pulumi("up", "--yes", "--skip-preview", "--continue-on-error")


def test_failures_at_once(new_stack: NewStack, space: str, demo: Path, kube: KubeClient, rows: Rows) -> None:
    kube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "exists", "namespace": space}})
    stack = new_stack()
    stack.program(AT_ONCE, namespace=space, chart=str(demo))
    _, idle = timed(stack.pulumi, "preview")
    up, took = timed(up_to_the_end, stack)
    urn = "urn:pulumi:test::plugin-test::kubernetes:core/v1:ConfigMap::exists"
    refused = f'resource "{urn}" was not successfully created by the Kubernetes API server'
    rows.contains("object exists already", f'{refused}: configmaps "exists" already exists', up.output)
    for advice in ("alias", "Patch resource", "`pulumi import`", "upsertExistingObjects"):
        rows.contains(f"its advice, {advice}", advice, up.output)
    rows.contains("object invalid", 'ConfigMap "Not A Name" is invalid: metadata.name: Invalid value', up.output)
    unreachable = "unreachable: unable to load schema information from the API server"
    rows.contains("cluster unreachable", f"configured Kubernetes cluster is {unreachable}", up.output)
    wrong = "values don't meet the specifications of the schema(s) in the following chart(s): demo:"
    rows.contains("values against the chart's schema", wrong, up.output)
    rows.contains("the values' types", "at '/size': got string, want integer", up.output)
    rows.contains("the values' names", "additional properties 'bogus' not allowed", up.output)
    rows.is_("the release leaves nothing", [], kube.list("v1", "Secret", space, labels="owner=helm"))
    rows.is_("none is retried", True, took - idle < RETRIES_SECONDS)
    made = {resource["urn"].rpartition("::")[2] for resource in stack.resources() if resource.get("id")}
    rows.is_("none is in the state", {"cluster", "dead"}, made)
    assert up.code != 0


def test_failures_after_retries(new_stack: NewStack, space: str, rows: Rows) -> None:
    stack = new_stack()
    stack.program(AFTER_RETRIES, namespace=space)
    preview = stack.preview()
    rows.is_("kind unknown, in preview", "create", preview.operation("thing"))
    rows.is_("namespace missing, in preview", "create", preview.operation("nowhere"))
    assert preview.code == 0, preview.output
    up, took = timed(up_to_the_end, stack)
    rows.contains(
        "kind unknown",
        "failed because the Kubernetes API server reported that the apiVersion for this resource does not exist. "
        "Verify that any required CRDs have been created: no matches for kind",
        up.output,
    )
    rows.contains("namespace missing", 'namespaces "nowhere" not found', up.output)
    rows.is_("both are retried six times", True, took >= RETRIES_SECONDS)
    assert up.code != 0


def test_a_missing_chart(new_stack: NewStack, rows: Rows) -> None:
    stack = new_stack()
    stack.program('k8s.helm.v3.Release("rel", chart="./nochart", opts=options)\n')
    preview = stack.preview()
    rows.contains(
        "chart path missing",
        'property chart value {./nochart} has a problem: path "./nochart" not found; check the chart name and '
        "repository configuration.",
        preview.diagnostics,
    )
    assert preview.code != 0
