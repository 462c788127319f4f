"""Base of every component."""

from __future__ import annotations

from typing import Any

import pulumi

PROJECT = "ai-on-aks"


class Component(pulumi.ComponentResource):
    """A component whose type is `ai-on-aks:<module>:<Class>`, from the module that defines it."""

    type_module: str | None = None
    """What stands in the type in place of that module. The type is in the URN of all that it holds: so where classes
    move, this stays.
    """

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        here = type(self).__module__.removeprefix("components.").replace(".", "/")
        module = self.type_module or here
        super().__init__(f"{PROJECT}:{module}:{type(self).__name__}", name, None, opts)

    def child(self, **options: Any) -> pulumi.ResourceOptions:
        """Options of a resource inside this component. The caller's own options never leak into children."""
        return pulumi.ResourceOptions(parent=self, **options)

    def kept_until_replaced(self, **options: Any) -> pulumi.ResourceOptions:
        """Options of a resource whose contents must not go before its successor is there.

        The azure-native provider deletes first whatever has a name of the program's own, also if that name changes: if
        the new one is then refused (taken by somebody else), images or data would be gone.
        """
        return self.child(delete_before_replace=False, **options)
