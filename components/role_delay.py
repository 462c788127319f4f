"""Azure RBAC needs up to five minutes to let a new role assignment into a cluster (Microsoft's Entra ID guide for AKS).

Until then the API server answers 403 Forbidden. Nothing of Azure tells when it is over, so the first objects that are
made in the cluster, its namespaces and volumes, are tried again. Everything else in it comes after a namespace.
"""

from __future__ import annotations

import asyncio

import pulumi

PAUSE_SECONDS = 15
ATTEMPTS = 28
"""Seven minutes in all."""


async def again_while_forbidden(args: pulumi.ErrorHookArgs) -> bool:
    """Whether to try again, after a pause. `args.errors` has the errors so far, the newest first."""
    if "forbidden" not in args.errors[0].lower() or len(args.errors) > ATTEMPTS:
        return False
    await asyncio.sleep(PAUSE_SECONDS)
    return True


def patience() -> pulumi.ResourceHookBinding:
    """For the resources that come first; make it once."""
    return pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook("role-not-acting-yet", again_while_forbidden)])
