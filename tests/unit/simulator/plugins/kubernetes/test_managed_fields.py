"""Fields of other managers that an object's own manager takes over."""

from __future__ import annotations

import pytest

from simulator.plugins.kubernetes import managed_fields


@pytest.mark.parametrize("manager", ["kubectl", "kubectl-edit", "kubectl-client-side-apply", "pulumi-kubernetes"])
def test_managers_are_recognised_by_how_they_begin(manager: str) -> None:
    entry = {"manager": manager, "operation": "Update", "fieldsV1": {"f:data": {}}}
    live = {"metadata": {"resourceVersion": "7", "managedFields": [entry]}}
    assert managed_fields.hand_over(live, "own") is not None
    entry["subresource"] = "scale"
    assert managed_fields.hand_over(live, "own") is None


def test_fields_are_handed_over_to_the_object_s_own_manager() -> None:
    made = {"manager": "pulumi-kubernetes", "operation": "Update", "fieldsV1": {"f:data": {"f:a": {}}}}
    own = {"manager": "pulumi-kubernetes-1234abcd", "operation": "Apply", "fieldsV1": {"f:data": {"f:b": {}}}}
    other = {"manager": "kubelet", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}}
    live = {"metadata": {"resourceVersion": "7", "managedFields": [made, own, other]}}
    patch = managed_fields.hand_over(live, "pulumi-kubernetes-1234abcd")
    assert patch is not None
    assert patch[0]["value"] == [other, own | {"fieldsV1": {"f:data": {"f:a": {}, "f:b": {}}}}]
    assert managed_fields.hand_over({"metadata": {"managedFields": [own, other]}}, own["manager"]) is None  # type: ignore[arg-type]
