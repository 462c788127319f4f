from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx
import pytest

from k8s.objects import Object
from simulator.kube import informer
from simulator.kube.client import ApiError, NoKindMatch, Resource
from simulator.kube.informer import Informer

POD = {"metadata": {"namespace": "ai", "name": "pod"}}


class RefusingKube:
    """Answers lists with these errors, then with one pod. Its watch has no events."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.over = threading.Event()

    def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, "pods", namespaced=True)

    def raw(self, _: str, path: str) -> Object:
        assert path == "/api/v1/pods"
        if self._errors:
            raise self._errors.pop(0)
        return {"items": [POD], "metadata": {"resourceVersion": "1"}}

    def watch(self, *_: str, resource_version: str) -> Iterator[tuple[str, Object]]:
        self.over.wait(10)
        yield from ()


def warnings(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *errors: Exception) -> list[str]:
    monkeypatch.setattr(informer, "_RETRY_S", 0)
    kube = RefusingKube(*errors)
    found = Informer(kube, "v1", "Pod", lambda: None)  # type: ignore[arg-type]
    assert found.synced.wait(10)
    assert found.get("ai", "pod") == {"apiVersion": "v1", "kind": "Pod", **POD}
    found.stop()
    kube.over.set()
    return caplog.messages


def test_logs_an_error_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    forbidden = [ApiError(403, "Forbidden", "pods is forbidden") for _ in range(3)]
    logged = warnings(monkeypatch, caplog, *forbidden, NoKindMatch("v1", "Pod"))
    assert logged == [
        "cannot list or watch Pod, retrying: pods is forbidden",
        'cannot list or watch Pod, retrying: no matches for kind "Pod" in version "v1"',
    ]


def test_does_not_log_a_restarting_server(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    assert warnings(monkeypatch, caplog, httpx.ConnectError("refused"), ValueError("half a line")) == []
