"""New role assignments act late: what needs them is tried again.

Azure RBAC needs up to five minutes to let a new one into a cluster (Microsoft's Entra ID guide for AKS). Until then the
API server answers 403 Forbidden. Nothing of Azure tells when it is over, so the first objects that are made in the
cluster, its namespaces and volumes, are tried again. Everything else in it comes after a namespace. So is a cluster
whose identity may not join its network yet: AKS looks before it makes anything.
"""

from __future__ import annotations

import asyncio
import re

import pulumi

PAUSE_SECONDS = 15
ATTEMPTS = 28
"""Seven minutes in all."""
_NOT_JOINED = re.compile(
    r"MissingPermission|Check access result not allowed|Microsoft\.Network/\S+/join/action", re.IGNORECASE
)
"""In the words of AKS and ARM where a control plane's identity lacks a role on its network or its zone
(Azure/AKS#3470, Azure/Azure-Landing-Zones#2892, MicrosoftDocs/azure-aks-docs#110).
"""


async def again_while_forbidden(args: pulumi.ErrorHookArgs) -> bool:
    """Whether to try again, after a pause. `args.errors` has the errors so far, the newest first."""
    return await again(args, late="forbidden" in args.errors[0].lower())


async def again_until_joined(args: pulumi.ErrorHookArgs) -> bool:
    """The same of a cluster whose identity may not join its network."""
    return await again(args, late=bool(_NOT_JOINED.search(args.errors[0])))


async def again(
    args: pulumi.ErrorHookArgs, *, late: bool, pause_s: float = PAUSE_SECONDS, attempts: int = ATTEMPTS
) -> bool:
    """Pauses and returns True, if what was asked is only `late` and there are attempts left."""
    if not late or len(args.errors) > attempts:
        return False
    await asyncio.sleep(pause_s)
    return True


def patience() -> pulumi.ResourceHookBinding:
    """For the resources that come first in a cluster; make it once."""
    return pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook("role-not-acting-yet", again_while_forbidden)])


def patience_to_join() -> pulumi.ResourceHookBinding:
    """For a cluster that joins a network by a new role."""
    return pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook("network-role-not-acting-yet", again_until_joined)])
