from __future__ import annotations

import pytest

from simulator.kube.client import KubeClient
from tests.contract.conformance.conftest import NewStack, Rows
from tests.contract.conformance.stack import ConformanceStack

pytestmark = pytest.mark.conformance
SECTION = "Drift and conflicts"

PROGRAM = """
mutable = k8s.Provider("mutable", kubeconfig=kubeconfig, cluster_identifier="x", enable_config_map_mutable=True)
OPTIONS = {"forced": {"pulumi.com/patchForce": "true"}}
for name in ("edited", "gone", "contested", "forced", "ignored", "changed"):
    k8s.core.v1.ConfigMap(name,
        metadata={"namespace": values["namespace"], "name": name, "annotations": OPTIONS.get(name, {})},
        data={"a": values[name], "b": "1"},
        opts=pulumi.ResourceOptions(provider=mutable, ignore_changes=["data.a"] if name == "ignored" else []))
"""
NAMES = ("edited", "gone", "contested", "forced", "ignored", "changed")
# pulumi-kubernetes, provider/pkg/await/await.go: handleSSAErr.
CONFLICT = (
    "server-side apply field conflict detected, see https://www.pulumi.com/registry/packages/kubernetes/how-to-guides/"
    "managing-resources-with-server-side-apply/#handle-field-conflicts-on-existing-resources for troubleshooting help"
)


@pytest.fixture(scope="module")
def stack(new_stack: NewStack, space: str) -> ConformanceStack:
    """The tests run in order on this stack."""
    stack = new_stack()
    stack.program(PROGRAM, namespace=space, **dict.fromkeys(NAMES, "1"))
    up = stack.up()
    assert up.code == 0, up.output
    return stack


def test_drift(stack: ConformanceStack, space: str, kube: KubeClient, rows: Rows) -> None:
    edit(kube, space, "edited", "kubectl-edit")
    kube.patch("v1", "ConfigMap", "edited", space, {"metadata": {"labels": {"of": "others"}}})
    kube.delete("v1", "ConfigMap", "gone", space)

    # provider.go, Diff: the live object, cut to the inputs' shape, against the new inputs.
    rows.is_("drift, without a refresh", "same", stack.preview().operation("edited"))
    # provider.go, Read: the live object as state and, cut to the inputs' shape, as inputs; 404 leaves the state.
    refreshed = stack.preview("--refresh")
    rows.is_("drift of a field that the program sets, after a refresh", "update", refreshed.operation("edited"))
    rows.is_("a field that another client added is not drift", ["data.a"], refreshed.changes("edited"))
    rows.is_("a deleted object, after a refresh", "create", refreshed.operation("gone"))
    repaired = stack.pulumi("up", "--yes", "--skip-preview", "--refresh")
    # await.go, fixCSAFieldManagers: fields of managers named `kubectl...` become the resource's own.
    rows.is_("drift by kubectl edit is reverted", "1", value(kube, space, "edited"))
    rows.is_("a label of another client stays", {"of": "others"}, labels(kube, space, "edited"))
    rows.is_("a deleted object is created again", "1", value(kube, space, "gone"))
    assert repaired.code == 0, repaired.output


def test_conflicts(stack: ConformanceStack, space: str, kube: KubeClient, rows: Rows) -> None:
    for name in ("contested", "forced", "ignored"):
        taken = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": space}}
        kube.apply(taken | {"data": {"a": "theirs"}}, field_manager="other", force=True)
    stack.program(PROGRAM, namespace=space, **dict.fromkeys(NAMES, "2") | {"edited": "1", "gone": "1"})
    preview = stack.preview()
    # provider.go, Diff: enableConfigMapMutable excludes `data` from properties that replace.
    rows.is_("enableConfigMapMutable: ConfigMap data", "update", preview.operation("changed"))
    rows.is_("a field in ignoreChanges", "same", preview.operation("ignored"))
    up = stack.pulumi("up", "--yes", "--skip-preview", "--continue-on-error")
    rows.contains("a field that another manager applied", CONFLICT, up.output)
    rows.contains(
        "the owner of the field",
        'Apply failed with 1 conflict: conflict with "other": .data.a',
        up.output.replace("\\", ""),
    )
    rows.is_("a contested field is not changed", "theirs", value(kube, space, "contested"))
    rows.is_("pulumi.com/patchForce takes the field", "2", value(kube, space, "forced"))
    rows.is_("an ignored field is not changed", "theirs", value(kube, space, "ignored"))
    rows.is_("other resources are changed", "2", value(kube, space, "changed"))
    assert up.code != 0


def edit(kube: KubeClient, space: str, name: str, manager: str) -> None:
    live = kube.get("v1", "ConfigMap", name, space)
    kube.replace(live | {"data": live["data"] | {"a": "edited"}}, field_manager=manager)


def value(kube: KubeClient, space: str, name: str) -> str:
    found: str = kube.get("v1", "ConfigMap", name, space)["data"]["a"]
    return found


def labels(kube: KubeClient, space: str, name: str) -> dict[str, str]:
    found: dict[str, str] = kube.get("v1", "ConfigMap", name, space)["metadata"].get("labels", {})
    return found
