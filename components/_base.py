"""The base class of all components."""

from __future__ import annotations

from typing import Any

import pulumi

PROJECT = "ai-on-aks"


class Component(pulumi.ComponentResource):
    """A component of the type `ai-on-aks:<module>:<Class>`."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None, *, module: str = "") -> None:
        here = (module or type(self).__module__).removeprefix("components.").replace(".", "/")
        super().__init__(f"{PROJECT}:{here}:{type(self).__name__}", name, None, opts)

    def child(self, **options: Any) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, **options)

    def kept_until_replaced(self, **options: Any) -> pulumi.ResourceOptions:
        """Returns the options of a resource that must stay until its replacement exists.

        By default, azure-native deletes a resource with a fixed name before it creates the replacement. If Azure then
        rejected the replacement, images or data would be lost.
        """
        return self.child(delete_before_replace=False, **options)
