"""Errors are temporary because a new role or webhook does not act yet."""

from __future__ import annotations

import asyncio
import contextlib

import pulumi

from components.azure import retries
from tests.support.case_files import case_table
from tests.support.golden import STACKS
from tests.support.mocks import program

REFUSED = (
    "default-flavor was not successfully created by the Kubernetes API server: Internal error occurred: failed calling "
    'webhook "mresourceflavor.kb.io": failed to call webhook: Post "https://kueue-webhook-service.mlbatch-system.svc'
    ':443/mutate?timeout=10s": '
)
UNANSWERED = f'{REFUSED}no endpoints available for service "kueue-webhook-service"'


@case_table(__file__, "errors", unanswered=UNANSWERED, refused=REFUSED)
def test_retries_temporary_errors_for_some_minutes(
    hook: str, errors: list[str], times: int, pause: float | None, pauses: list[float]
) -> None:
    args = pulumi.ErrorHookArgs(urn="", id="", name="", type="", failed_operation="create", errors=errors * times)
    loop = asyncio.new_event_loop()  # after `asyncio.run`, Pulumi's mocks find no loop
    with contextlib.closing(loop):
        assert loop.run_until_complete(getattr(retries, hook)(args)) is (pause is not None)
    assert pauses == ([pause] if pause else [])


def test_each_kubernetes_object_except_releases_has_the_webhook_retry() -> None:
    found = program(STACKS["teams"]).registered
    hooked = {each.type for each in found if "webhook-not-answering-yet" in each.request.hooks.on_error}
    objects = {each.type for each in found if each.type.startswith("kubernetes:")}
    assert "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor" in hooked
    assert hooked == objects - {"kubernetes:helm.sh/v3:Release"}
