"""Emulates hook Jobs of charts that create CRDs."""

from __future__ import annotations

import functools
from collections.abc import Callable

import yaml

from simulator.host import paths
from simulator.kubelet.programs import PodContext

CRD_API = "apiextensions.k8s.io/v1"
OURS = ("app.kubernetes.io/part-of", "simulator")


def apply_crds(chart: str) -> Callable[[PodContext], None]:
    return functools.partial(_apply, chart)


def _apply(chart: str, ctx: PodContext) -> None:
    """Creates missing CRDs. Updates existing CRDs only if the simulator has created them."""
    for file in sorted((paths.ROOT / "simulator" / "charts" / chart / "crds").glob("*.yaml")):
        for crd in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            name = crd["metadata"]["name"]
            found = ctx.kube.find(CRD_API, "CustomResourceDefinition", name)
            if found is None:
                ctx.kube.create(crd)
            elif found["metadata"].get("labels", {}).get(OURS[0]) == OURS[1] and found["spec"] != crd["spec"]:
                ctx.kube.patch(CRD_API, "CustomResourceDefinition", name, None, {"spec": crd["spec"]})
            ctx.log(f"{name} {'created' if found is None else 'up to date'}")
