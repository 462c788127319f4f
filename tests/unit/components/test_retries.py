"""Errors that pass, because a new role or webhook does not act yet, are retried for a while; others are not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pulumi
import pytest

from components.azure import retries
from tests.support.error_hooks import tries_again
from tests.support.golden import STACKS
from tests.support.mocks import program

REFUSED = (
    "default-flavor was not successfully created by the Kubernetes API server: Internal error occurred: failed calling "
    'webhook "mresourceflavor.kb.io": failed to call webhook: Post "https://kueue-webhook-service.mlbatch-system.svc'
    ':443/mutate?timeout=10s": {}'
)
UNANSWERED = REFUSED.format('no endpoints available for service "kueue-webhook-service"')
JOIN = "Microsoft.Network/virtualNetworks/join/action"


@pytest.mark.parametrize(
    ("hook", "errors", "pause"),
    [
        (retries.again_while_forbidden, ['namespaces is forbidden: User "x" cannot create resource'], 15),
        (retries.again_while_forbidden, ["connection refused", "forbidden"], None),
        (retries.again_while_forbidden, ["Forbidden"] * 29, None),
        (retries.again_until_joined, ["CustomPrivateDNSZoneMissingPermissionError: identity must be given"], 15),
        (retries.again_until_joined, ["Check access result not allowed for action Microsoft.Network/x/write"], 15),
        (retries.again_until_joined, [f"does not have permission to perform action(s) '{JOIN}' on"], 15),
        (retries.again_until_joined, ["QuotaExceeded: 192 vCPUs"], None),
        (retries.again_until_answered, [UNANSWERED], 5),
        (retries.again_until_answered, [REFUSED.format("dial tcp 10.0.3.4:443: connect: connection refused")], 5),
        (retries.again_until_answered, ['admission webhook "v.kb.io" denied the request: invalid', UNANSWERED], None),
        (retries.again_until_answered, [REFUSED.format("x509: unknown authority"), UNANSWERED], None),
        (retries.again_until_answered, ['Get "https://127.0.0.1:6443/api": connect: connection refused'], None),
        (retries.again_until_answered, [UNANSWERED] * 25, None),
    ],
)
def test_what_passes_is_retried_for_some_minutes(
    hook: Callable[[pulumi.ErrorHookArgs], Awaitable[bool]], errors: list[str], pause: float | None, pauses: list[float]
) -> None:
    assert tries_again(hook, *errors) is (pause is not None)
    assert pauses == ([pause] if pause else [])


def test_each_object_in_the_cluster_has_the_hook_and_no_release_has() -> None:
    found = program(STACKS["teams"]).registered
    hooked = {each.type for each in found if "webhook-not-answering-yet" in each.request.hooks.on_error}
    objects = {each.type for each in found if each.type.startswith("kubernetes:")}
    assert "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor" in hooked
    assert hooked == objects - {"kubernetes:helm.sh/v3:Release"}
