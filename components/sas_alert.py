"""An alert before SAS end, where the stack has monitoring: the program knows when they do, and tells Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component
from components.container_access import ContainerAccess, Sas
from components.sas import renewal, warned_for
from components.sas_providers import instant

ALERT = "SASEnds"


class SasAlert(Component):
    """A PrometheusRule. Another window is another rule, by the same `pulumi up`."""

    def __init__(
        self,
        name: str,
        signed: Iterable[tuple[ContainerAccess, Sas]],
        namespace: pulumi.Input[str],
        monitoring: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`monitoring` brings the kind."""
        super().__init__(name, opts)
        kubernetes.apiextensions.CustomResource(
            name,
            api_version="monitoring.coreos.com/v1",
            kind="PrometheusRule",
            metadata={"name": name, "namespace": namespace},
            spec=pulumi.Output.all(*map(_rule_of, signed)).apply(spec),
            opts=self.child(depends_on=monitoring),
        )
        self.register_outputs({})


def _rule_of(signed: tuple[ContainerAccess, Sas]) -> pulumi.Output[dict[str, Any]]:
    access, sas = signed
    fix = renewal(access.account_key, sas.rotation, pulumi.get_stack())
    times = pulumi.Output.all(sas.start, sas.expiry)
    return times.apply(lambda window: rule(access.container, *window, fix=fix))


def spec(rules: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of the PrometheusRule."""
    return {"groups": [{"name": "storage", "rules": list(rules)}]}


def rule(container: str, start: str, expiry: str, *, fix: str) -> dict[str, Any]:
    """It fires from when previews warn, too, and as long as the SAS is not another. Its value is the seconds left."""
    left = warned_for(start, expiry)
    return {
        "alert": ALERT,
        "expr": f"vector({instant(expiry).timestamp():.0f}) - time() < {left.total_seconds():.0f}",
        "labels": {"severity": "critical", "container": container},
        "annotations": {
            "summary": f"The SAS of container {container} ends at {expiry}, and mounts and uploads fail from then on",
            "description": f"Issue new ones: {fix}",
        },
    }
