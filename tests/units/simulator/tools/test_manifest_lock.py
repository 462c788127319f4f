"""`make lock-manifests`: the checksums that it writes, and those that it does not."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
import yaml

from config.facts.versions import Manifests, versions
from simulator.tools import manifest_lock
from simulator.tools.errors import ToolError, Unreachable

PIN = versions().manifests["appwrapper"]
CONTENT = b"kind: Namespace\n"
DIGEST = sha256(CONTENT).hexdigest()


def client(answer: Callable[[httpx.Request], httpx.Response]) -> httpx.Client:
    return httpx.Client(transport=httpx.MockTransport(answer))


def has(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200, content=CONTENT)


def has_none(_: httpx.Request) -> httpx.Response:
    return httpx.Response(404)


def away(_: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("no route to host")


def test_the_checksum_is_written_beside_its_pin_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlocked = versions().model_copy(update={"manifests": {PIN.name: PIN.model_copy(update={"sha256": None})}})
    monkeypatch.setattr(manifest_lock, "versions", lambda: unlocked)
    file = tmp_path / "versions.yaml"
    file.write_text(manifest_lock.VERSIONS.read_text())
    for _ in range(2):
        assert manifest_lock.lock(client(has), file) == [f"appwrapper {DIGEST}"]
        before, after = (yaml.safe_load(each.read_text()) for each in (manifest_lock.VERSIONS, file))
        assert after["manifests"]["appwrapper"].pop("sha256") == DIGEST
        before["manifests"]["appwrapper"].pop("sha256")
        assert after == before


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [(has_none, ToolError, "answered 404"), (away, Unreachable, "cannot be reached from here")],
)
def test_what_cannot_be_fetched_is_told_and_nothing_is_written(
    answer: Callable[[httpx.Request], httpx.Response], error: type[Exception], says: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=says):
        manifest_lock.lock(client(answer), tmp_path / "versions.yaml")
    assert not (tmp_path / "versions.yaml").exists()


def test_what_has_changed_since_it_was_pinned_is_not_taken() -> None:
    assert isinstance(PIN, Manifests)
    with pytest.raises(ToolError, match=f"has the sha256 {DIGEST}, and .* says 000"):
        manifest_lock.fetch(client(has), PIN.model_copy(update={"sha256": "0" * 64}))
