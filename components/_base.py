"""Base of every component."""

from __future__ import annotations

from typing import Any

import pulumi

PROJECT = "ai-on-aks"


class Component(pulumi.ComponentResource):
    """A component whose type is `ai-on-aks:<module>:<Class>`, from the module that defines it."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None, *, module: str = "") -> None:
        """`module` names another module in the type than the one that defines the class."""
        here = (module or type(self).__module__).removeprefix("components.").replace(".", "/")
        super().__init__(f"{PROJECT}:{here}:{type(self).__name__}", name, None, opts)

    def child(self, **options: Any) -> pulumi.ResourceOptions:
        """Options of a resource inside this component. The caller's own options never leak into children."""
        return pulumi.ResourceOptions(parent=self, **options)

    def kept_until_replaced(self, **options: Any) -> pulumi.ResourceOptions:
        """Options of a resource whose contents must not go before its successor is there.

        The azure-native provider deletes first whatever has a name of the program's own, also if that name changes: if
        the new one is then refused (taken by somebody else), images or data would be gone.
        """
        return self.child(delete_before_replace=False, **options)
