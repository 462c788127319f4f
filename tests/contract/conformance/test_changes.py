from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

import pytest

from simulator.kube.client import KubeClient
from tests.contract.conformance.conftest import NewStack, Rows
from tests.contract.conformance.stack import ConformanceStack, Json, Preview
from tests.support.plugin_changes import ROWS, changed, custom_kind

pytestmark = pytest.mark.conformance
SECTION = "Effects of changes"
CLUSTER_SCOPED = ("PersistentVolume", "ClusterRoleBinding", "StorageClass", "PriorityClass")
REJECTED = {
    "PriorityClass value": "is invalid: value: Forbidden: may not be changed in an update",
    "PersistentVolumeClaim request": "failed to fully initialize or become live:",
}
"""The API server's errors for changes that the plugin previews as updates. A claim's depends on whether it is bound."""

PROGRAM = """
import re

MODULES = {"rbac.authorization.k8s.io/v1": "rbac.v1", "storage.k8s.io/v1": "storage.v1",
    "scheduling.k8s.io/v1": "scheduling.v1"}

for name, (token, manifest) in values.items():
    group, kind = token.split(":")
    arguments = {re.sub("([A-Z])", lambda letter: "_" + letter[0].lower(), key): value
        for key, value in manifest.items()}
    if group == "batch.volcano.test/v1alpha1":
        k8s.apiextensions.CustomResource(name, **arguments, opts=options)
        continue
    module = k8s
    for part in MODULES.get(group, group.replace("/", ".")).split("."):
        module = getattr(module, part)
    del arguments["api_version"], arguments["kind"]
    getattr(module, kind)(name, **arguments, opts=options)
"""


@pytest.fixture(scope="module")
def stack(new_stack: NewStack, space: str, kube: KubeClient) -> Iterator[ConformanceStack]:
    kube.create(custom_kind())
    stack = new_stack()
    stack.program(PROGRAM, **objects(space, second=()))
    first = stack.up()
    assert first.code == 0, first.output
    yield stack
    stack.program(PROGRAM)
    stack.up()
    kube.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "jobs.batch.volcano.test")


@pytest.fixture(scope="module")
def previewed(stack: ConformanceStack, space: str) -> Preview:
    """Omits changes that the API server rejects, because they end a preview."""
    stack.program(PROGRAM, **objects(space, second=ROWS.keys() - REJECTED.keys()))
    found = stack.preview()
    assert found.code == 0, found.diagnostics
    return found


def objects(space: str, *, second: Iterable[str]) -> dict[str, tuple[str, Json]]:
    found = {}
    for title, row in ROWS.items():
        manifest = copy.deepcopy(row.manifest)
        if row.token.rpartition(":")[2] not in CLUSTER_SCOPED:
            manifest["metadata"] = manifest["metadata"] | {"namespace": space}
        if title in second:
            manifest = changed(manifest, row.path, row.value)
        found[logical(title)] = (row.token, manifest)
    return found


def logical(title: str) -> str:
    return title.lower().replace(" ", "-")


@pytest.mark.parametrize("title", [title for title in ROWS if title not in REJECTED])
def test_a_change(title: str, previewed: Preview, rows: Rows) -> None:
    row = ROWS[title]
    expected = f"replace for {', '.join(row.replaces)}" if row.replaces else "update"
    seen = previewed.operation(logical(title))
    reasons = previewed.reasons(logical(title))
    rows.is_(title, expected, f"{seen} for {', '.join(reasons)}" if reasons else seen)


@pytest.mark.parametrize("title", REJECTED)
def test_a_change_that_the_api_server_rejects(title: str, stack: ConformanceStack, space: str, rows: Rows) -> None:
    stack.program(PROGRAM, **objects(space, second=[title]))
    rows.is_(f"{title}, in preview", "update", stack.preview().operation(logical(title)))
    up = stack.up()
    rows.contains(f"{title}, in up", REJECTED[title], up.output)
    assert up.code != 0
