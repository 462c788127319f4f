"""Objects that a new operator's webhook keeps out, because nobody answers there yet, are tried again."""

from __future__ import annotations

import pytest

from components import webhook_delay
from tests.support.error_hooks import tries_again
from tests.support.golden import STACKS
from tests.support.mocks import program

REFUSED = (
    "default-flavor was not successfully created by the Kubernetes API server: Internal error occurred: failed calling "
    'webhook "mresourceflavor.kb.io": failed to call webhook: Post "https://kueue-webhook-service.mlbatch-system.svc'
    ':443/mutate?timeout=10s": {}'
)


@pytest.mark.parametrize(
    "why",
    [
        'no endpoints available for service "kueue-webhook-service"',
        "dial tcp 10.0.3.4:443: connect: connection refused",
    ],
)
def test_a_webhook_that_does_not_answer_yet_is_waited_for(why: str, pauses: list[float]) -> None:
    assert tries_again(webhook_delay.again_until_answered, REFUSED.format(why))
    assert pauses == [webhook_delay.PAUSE_SECONDS]


@pytest.mark.parametrize(
    "error",
    [
        'admission webhook "vresourceflavor.kb.io" denied the request: spec.nodeTaints is invalid',
        REFUSED.format("x509: certificate signed by unknown authority"),
        'Get "https://127.0.0.1:6443/api": dial tcp 127.0.0.1:6443: connect: connection refused',
    ],
)
def test_what_a_webhook_refuses_and_other_errors_are_told_at_once(error: str, pauses: list[float]) -> None:
    assert not tries_again(webhook_delay.again_until_answered, error, REFUSED.format("no endpoints available"))
    assert pauses == []


def test_it_ends(pauses: list[float]) -> None:
    assert not tries_again(
        webhook_delay.again_until_answered, *[REFUSED.format("no endpoints available")] * (webhook_delay.ATTEMPTS + 1)
    )
    assert pauses == []


def test_each_object_in_the_cluster_has_the_hook_and_no_release_has() -> None:
    found = program(STACKS["teams"]).registered
    hooked = {each.type for each in found if "webhook-not-answering-yet" in each.request.hooks.on_error}
    objects = {each.type for each in found if each.type.startswith("kubernetes:")}
    assert "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor" in hooked
    assert hooked == objects - {"kubernetes:helm.sh/v3:Release"}
