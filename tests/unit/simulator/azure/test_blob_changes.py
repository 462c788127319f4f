"""Mounts read the log of changed blobs, not a list."""

from __future__ import annotations

from simulator.azure.blobs.changes import Changes


def test_any_blob_may_have_changed_before_the_first_position() -> None:
    changes = Changes()
    changes.record("/models/data/a", "1")
    assert changes.since("models", "data", 0) == (2, None)


def test_returns_the_last_etag_of_each_changed_blob() -> None:
    changes = Changes()
    begun, _ = changes.since("models", "data", 0)
    for path, etag in (("a/b", "1"), ("c", "2"), ("a/b", "3"), ("c", "")):
        changes.record(f"/models/data/{path}", etag)
    position, names = changes.since("models", "data", begun)
    assert names == {"a/b": "3", "c": ""}
    assert changes.since("models", "data", position) == (position, {})
    for other in ("/models/other/a", "/elsewhere/data/a"):
        changes.record(other, "1")
    assert changes.since("models", "data", position) == (position, {})


def test_any_blob_may_have_changed_after_a_request_without_a_blob_name() -> None:
    changes = Changes()
    begun, _ = changes.since("models", "data", 0)
    changes.record("/models/data/a", "1")
    changes.record("/models/data", "")
    position, names = changes.since("models", "data", begun)
    assert names is None
    assert changes.since("models", "data", position) == (position, {})
