from __future__ import annotations

import re

import pytest

from simulator.kube.client import KubeClient
from tests.contract.conformance.conftest import NewStack, Rows
from tests.contract.conformance.stack import ConformanceStack

pytestmark = pytest.mark.conformance
SECTION = "Lifecycle"
TIMEOUT_SECONDS = 3
BEFORE = ["delete-replaced", "replace", "create-replacement"]
AFTER = ["create-replacement", "replace", "delete-replaced"]
SOLE = "this Patch resource is currently managing a required field, so it can't be deleted directly. Either set the"
HOLDS = "test.invalid/holds"

PROGRAM = """
second = values["version"] > 1
third = values["version"] > 2

def config_map(name, data, metadata={}, **more):
    metadata = {"namespace": values["namespace"]} | metadata
    k8s.core.v1.ConfigMap(name, metadata=metadata, data=data, opts=pulumi.ResourceOptions(provider=provider, **more))

changing = {"a": "2" if second else "1"}
config_map("imported", {"a": "1"}, {"name": "adopted"}, import_=f"{values['namespace']}/adopted")
config_map("named", changing, {"name": "named"})
config_map("unnamed", changing)
config_map("deleted-first", changing, delete_before_replace=True)
config_map("new" if second else "old", {"a": "1"}, aliases=[pulumi.Alias(name="old")])
config_map("renamed" if third else "first", {"a": "1"}, {"name": "kept"})
patched = {"namespace": values["namespace"], "name": "patched"}
labels = {"app": "a"}
if not second:
    patch = k8s.core.v1.ConfigMapPatch("patch", metadata=patched, data={"ours": "1"}, opts=options)
    patch.data.apply(lambda data: pulumi.log.info(f"patch: {data}"))
    k8s.apps.v1.DeploymentPatch("required", opts=options,
        metadata=patched | {"annotations": {"pulumi.com/skipAwait": "true"}},
        spec={"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "registry.invalid/never-runs"}]}}})
    k8s.core.v1.Namespace("space", metadata={"name": "conformance-space"}, opts=options)
    held = {"finalizers": [values["holds"]]}
    config_map("by-annotation", {}, {"name": "held-1", "annotations": {"pulumi.com/timeoutSeconds": values["timeout"]}}
        | held)
    config_map("by-option", {}, {"name": "held-2"} | held,
        custom_timeouts=pulumi.CustomTimeouts(delete=f"{values['timeout']}s"))
"""


@pytest.fixture(scope="module")
def stack(new_stack: NewStack, space: str, kube: KubeClient) -> ConformanceStack:
    """The tests run in order on this stack."""
    kube.create(config_map(space, "adopted") | {"data": {"a": "1"}})
    kube.create(config_map(space, "patched") | {"data": {"theirs": "1"}})
    return new_stack()


def test_import_and_patch(stack: ConformanceStack, space: str, kube: KubeClient, rows: Rows) -> None:
    version(stack, space, 1)
    preview = stack.preview()
    rows.is_("import, in preview", "import", preview.operation("imported"))
    # provider.go, Create: no dry run of Patch resources.
    rows.contains("a Patch resource, in preview", "patch: {'ours': '1'}", preview.diagnostics)
    uid = kube.get("v1", "ConfigMap", "adopted", space)["metadata"]["uid"]
    up = stack.up()
    assert up.code == 0, up.output
    rows.is_("an imported object stays", uid, kube.get("v1", "ConfigMap", "adopted", space)["metadata"]["uid"])
    rows.is_("a Patch resource adds to an object", {"ours": "1", "theirs": "1"}, data(kube, space, "patched"))
    rows.is_("a Patch resource makes an object", True, kube.find("apps/v1", "Deployment", "patched", space) is not None)
    rows.is_("the next preview", {"same"}, {step["op"] for step in stack.preview().steps})


def test_an_import_that_does_not_match(new_stack: NewStack, space: str, rows: Rows) -> None:
    stack = new_stack()
    metadata = {"name": "adopted", "namespace": space}
    stack.program(
        'k8s.core.v1.ConfigMap("imported", metadata=values["metadata"], data={"a": "other"},\n'
        f'    opts=pulumi.ResourceOptions(provider=provider, import_="{space}/adopted"))\n',
        metadata=metadata,
    )
    up = stack.up()
    rows.contains(
        "import, other inputs", "previously-imported resources that still specify an ID may not be", up.output
    )
    assert up.code != 0


def test_import_on_the_command_line(new_stack: NewStack, space: str, kube: KubeClient, rows: Rows) -> None:
    kube.create(config_map(space, "found") | {"data": {"a": "1"}})
    stack = new_stack()
    stack.program("")
    assert stack.up().code == 0
    provider = "cluster=urn:pulumi:test::plugin-test::pulumi:providers:kubernetes::cluster"
    found = ("kubernetes:core/v1:ConfigMap", "found", f"{space}/found", "--provider", provider)
    imported = stack.pulumi("import", *found, "--yes", "--skip-preview")
    assert imported.code == 0, imported.output
    inputs = next(item["inputs"] for item in stack.resources() if item["urn"].endswith("::found"))
    # provider.go, Read: the imported object becomes inputs, without the API server's defaults.
    expected = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}}
    rows.is_("pulumi import", expected | {"metadata": {"name": "found", "namespace": space}}, inputs)


def test_replacement_and_deletion(stack: ConformanceStack, space: str, kube: KubeClient, rows: Rows) -> None:
    kube.create(config_map("conformance-space", "any"))
    version(stack, space, 2)
    preview = stack.preview()
    # provider.go, Diff: deleteBeforeReplace if the user chose the name and keeps it.
    rows.is_("replacing an object with a name of the user", BEFORE, preview.operations("named"))
    rows.is_("replacing an object with a generated name", AFTER, preview.operations("unnamed"))
    rows.is_("the same with delete_before_replace", BEFORE, preview.operations("deleted-first"))
    rows.is_("a resource with an alias", "same", preview.operation("new"))
    up = stack.pulumi("up", "--yes", "--skip-preview", "--continue-on-error")
    rows.is_("deletion waits until a namespace is gone", None, kube.find("v1", "Namespace", "conformance-space"))
    # await.go, Deletion, and condition/deleted.go.
    for name, setting in (("by-annotation", "timeoutSeconds"), ("by-option", "customTimeouts")):
        ended = f"ConfigMap {name} **deleting failed** error: timed out waiting for the condition"
        rows.contains(f"{setting} ends a deletion", ended, re.sub(r"\([\d.]+s\)|[()]", "", up.output))
    rows.contains("why", f"finalizers might be preventing deletion ({HOLDS})", up.output)
    rows.is_(
        "resources that were not deleted stay in the state", {"by-annotation", "by-option", "required"}, kept(stack)
    )
    # await.go, Deletion: a Patch resource's fields are given up, and the object stays.
    rows.is_("deletion of a Patch resource", {"theirs": "1"}, data(kube, space, "patched"))
    # provider.go, Delete, and await/error.go, IsDeleteRequiredFieldErr.
    rows.contains("deletion of a Patch resource that has a required field", SOLE, up.output)
    assert up.code != 0


def test_deletion_continues(stack: ConformanceStack, space: str, kube: KubeClient, rows: Rows) -> None:
    for name in ("held-1", "held-2"):
        kube.patch("v1", "ConfigMap", name, space, {"metadata": {"finalizers": None}})
    kube.delete("apps/v1", "Deployment", "patched", space)
    up = stack.pulumi("up", "--yes", "--skip-preview", "--continue-on-error")
    # await.go, Deletion: nilIfGVKDeleted.
    rows.is_("deletion of a deleted object", {"required"}, kept(stack))
    # ssa/actions.go, Relinquish: applies an object without fields, existing or not.
    rows.contains("deletion of a Patch resource of a deleted object", SOLE, up.output)
    up = stack.pulumi("up", "--yes", "--skip-preview", "--refresh")
    rows.is_("after a refresh", set(), kept(stack))
    assert up.code == 0, up.output


def test_a_rename_without_an_alias(stack: ConformanceStack, space: str, kube: KubeClient, rows: Rows) -> None:
    # tests/sdk/yaml/existing_object_test.go, TestRenameDoesNotDeleteObject.
    version(stack, space, 3)
    preview = stack.preview()
    rows.is_(
        "a rename without an alias, in preview",
        ("create", "delete"),
        (preview.operation("renamed"), preview.operation("first")),
    )
    up = stack.up()
    rows.contains("a rename without an alias, in up", 'configmaps "kept" already exists', up.output)
    rows.is_("the object stays", {"a": "1"}, data(kube, space, "kept"))
    assert up.code != 0


def version(stack: ConformanceStack, space: str, number: int) -> None:
    stack.program(PROGRAM, version=number, namespace=space, timeout=str(TIMEOUT_SECONDS), holds=HOLDS)


def kept(stack: ConformanceStack) -> set[str]:
    first = {"patch", "required", "space", "by-annotation", "by-option"}
    return first & {resource["urn"].rpartition("::")[2] for resource in stack.resources()}


def config_map(namespace: str, name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def data(kube: KubeClient, space: str, name: str) -> dict[str, str]:
    found: dict[str, str] = kube.get("v1", "ConfigMap", name, space)["data"]
    return found
