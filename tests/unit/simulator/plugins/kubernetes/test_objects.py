from __future__ import annotations

import pytest
from pulumi.runtime.proto import provider_pb2

from simulator.plugins.kubernetes import managed_fields
from simulator.plugins.kubernetes.checkpoint import prune, to_object, to_properties
from simulator.plugins.kubernetes.kinds import Kind, kind_of_urn
from simulator.plugins.kubernetes.normalize import normalize
from simulator.plugins.kubernetes.structural import compare, ignored, parse_path, path_text
from simulator.plugins.marshal import UNKNOWN, Secret


@pytest.mark.parametrize(
    "text", ["spec.containers[0].image", 'metadata.annotations["pulumi.com/skipAwait"]', "data.a", 'a["x.y"][2].z']
)
def test_parses_the_paths_that_it_formats(text: str) -> None:
    assert path_text(parse_path(text)) == text


def test_ignored_paths_cover_nested_paths() -> None:
    assert ignored(("spec", "replicas"), ["spec.replicas"])
    assert ignored(("spec", "template", "spec"), ["spec.template"])
    assert ignored(("spec", "containers", 0, "image"), ["spec.containers[*].image"])
    assert not ignored(("spec",), ["spec.replicas"])


def test_compares_all_properties() -> None:
    old = {"same": 1, "number": 1, "gone": {"x": 1}, "items": [1, 2], "nested": {"a": True}}
    new = {"same": 1.0, "number": "1", "items": [1, 3, 4], "nested": {"a": 1}, "new": UNKNOWN}
    name = provider_pb2.PropertyDiff.Kind.Name
    assert {path_text(path): name(change.kind) for path, change in compare(old, new).items()} == {
        "number": "UPDATE",
        "gone": "DELETE",
        "items[1]": "UPDATE",
        "items[2]": "ADD",
        "nested.a": "UPDATE",
        "new": "ADD",
    }


def test_prunes_fields_that_the_inputs_lack() -> None:
    live = {"a": 1, "server": 2, "list": [{"x": 1, "default": 2}, {"injected": 1}]}
    assert prune(live, {"a": 0, "list": [{"x": 0}], "missing": 1}) == {"a": 1, "list": [{"x": 1}]}
    assert prune({}, {"empty": [], "full": [1]}, drops_empty=True) == {"empty": []}


def test_does_not_normalize_an_object_with_unknowns() -> None:
    unknown = {"apiVersion": "v1", "kind": "Secret", "metadata": {}, "stringData": {"a": UNKNOWN}}
    assert normalize(unknown)["stringData"] == {"a": UNKNOWN}


def test_converts_schema_keywords_with_dashes() -> None:
    properties = {"spec": {"x_kubernetes_list_type": "map"}}
    assert to_object(properties) == {"spec": {"x-kubernetes-list-type": "map"}}
    assert to_properties(to_object(properties), {}) == properties


def test_a_list_with_a_secret_is_secret() -> None:
    assert to_properties({"items": ["a", "b"]}, {"items": ["a", Secret("b")]})["items"] == Secret(["a", "b"])


def test_parses_the_kind_of_a_urn() -> None:
    start = "urn:pulumi:s::p::my:component:Thing$kubernetes:"
    assert kind_of_urn(f"{start}core/v1:Secret::x") == Kind("", "v1", "Secret")
    assert kind_of_urn(f"{start}batch.volcano.sh/v1alpha1:Job::x").api_version == "batch.volcano.sh/v1alpha1"
    with pytest.raises(ValueError, match="is not a Kubernetes type"):
        kind_of_urn("urn:pulumi:s::p::kubernetes:yaml:ConfigGroup::x")


@pytest.mark.parametrize("manager", ["kubectl", "kubectl-edit", "kubectl-client-side-apply", "pulumi-kubernetes"])
def test_recognizes_managers_by_their_prefix(manager: str) -> None:
    entry = {"manager": manager, "operation": "Update", "fieldsV1": {"f:data": {}}}
    live = {"metadata": {"resourceVersion": "7", "managedFields": [entry]}}
    assert managed_fields.hand_over(live, "own") is not None
    entry["subresource"] = "scale"
    assert managed_fields.hand_over(live, "own") is None


def test_moves_fields_to_the_manager_of_the_object() -> None:
    made = {"manager": "pulumi-kubernetes", "operation": "Update", "fieldsV1": {"f:data": {"f:a": {}}}}
    own = {"manager": "pulumi-kubernetes-1234abcd", "operation": "Apply", "fieldsV1": {"f:data": {"f:b": {}}}}
    other = {"manager": "kubelet", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}}
    live = {"metadata": {"resourceVersion": "7", "managedFields": [made, own, other]}}
    patch = managed_fields.hand_over(live, "pulumi-kubernetes-1234abcd")
    assert patch is not None
    assert patch[0]["value"] == [other, own | {"fieldsV1": {"f:data": {"f:a": {}, "f:b": {}}}}]
    assert managed_fields.hand_over({"metadata": {"managedFields": [own, other]}}, own["manager"]) is None  # type: ignore[arg-type]
