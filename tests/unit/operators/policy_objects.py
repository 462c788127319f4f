from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Object = dict[str, Any]


def policy_objects(name: str, spec: Mapping[str, Any], binding: Mapping[str, Any]) -> Iterator[Object]:
    for kind, content in (("", spec), ("Binding", binding)):
        head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"ValidatingAdmissionPolicy{kind}"}
        yield {**head, "metadata": {"name": name}, "spec": dict(content)}
