"""The resource group of a stack, separate from the cluster: registry and data outlive clusters."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi_azure_native import resources

from components._base import Component
from config.schema.models import Settings


class ResourceGroup(Component):
    name: pulumi.Output[str]
    id: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        settings: Settings,
        tags: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        group = resources.ResourceGroup(
            "resource-group",
            resource_group_name=settings.names.resource_group,
            location=settings.location,
            tags=tags,
            opts=self.child(),
        )
        self.name, self.id = group.name, group.id
        self.register_outputs({"name": self.name})
