"""Asks an error hook of the program as the engine does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pulumi


def tries_again(hook: Callable[[pulumi.ErrorHookArgs], Awaitable[bool]], *errors: str) -> bool:
    """What it says of a resource that could not be created; of the errors so far, the newest comes first."""
    args = pulumi.ErrorHookArgs(urn="", id="", name="", type="", failed_operation="create", errors=list(errors))
    loop = asyncio.new_event_loop()  # `asyncio.run` would leave the thread without one, and Pulumi's mocks need it
    try:
        return loop.run_until_complete(_said(hook, args))
    finally:
        loop.close()


async def _said(hook: Callable[[pulumi.ErrorHookArgs], Awaitable[bool]], args: pulumi.ErrorHookArgs) -> bool:
    return await hook(args)
