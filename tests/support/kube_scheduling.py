"""Recorded scheduling decisions of Kubernetes, for the program and the simulator."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from k8s.objects import Object

NODE = "n1"


@cache
def recorded(part: str) -> tuple[Object, ...]:
    return tuple(yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))[part])


def pod(case: Object) -> Object:
    spec = {"nodeSelector": case.get("selector", {}), "tolerations": case.get("tolerations", []), "containers": []}
    if "terms" in case:
        required = {"nodeSelectorTerms": case["terms"]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"metadata": {"name": "p", "namespace": "ai"}, "spec": case.get("spec", spec)}


def node(case: Object) -> Object:
    taint = {"key": "sku", "value": "gpu", "effect": case.get("effect", "")}
    taints = [taint] if taint["effect"] else []
    return {"metadata": {"name": NODE, "labels": case.get("labels", {})}, "spec": {"taints": taints}}
