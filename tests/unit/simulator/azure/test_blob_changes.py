"""Which blobs of a container users have written to: what mounts ask in place of listing it."""

from __future__ import annotations

from simulator.azure.blobs.changes import Changes


def test_at_first_all_may_be_other() -> None:
    changes = Changes()
    changes.tell("/models/data/a", "1")
    assert changes.since("models", "data", 0) == (2, None)


def test_then_what_was_written_or_removed_with_its_last_etag() -> None:
    changes = Changes()
    begun, _ = changes.since("models", "data", 0)
    for path, etag in (("a/b", "1"), ("c", "2"), ("a/b", "3"), ("c", "")):
        changes.tell(f"/models/data/{path}", etag)
    told, names = changes.since("models", "data", begun)
    assert names == {"a/b": "3", "c": ""}
    assert changes.since("models", "data", told) == (told, {})


def test_each_container_by_itself() -> None:
    changes = Changes()
    begun, _ = changes.since("models", "data", 0)
    changes.tell("/models/other/a", "1")
    changes.tell("/elsewhere/data/a", "1")
    assert changes.since("models", "data", begun) == (begun, {})


def test_what_names_no_blob_means_all() -> None:
    """A batch of requests, and a container that was removed and made again."""
    changes = Changes()
    begun, _ = changes.since("models", "data", 0)
    changes.tell("/models/data/a", "1")
    changes.tell("/models/data", "")
    told, names = changes.since("models", "data", begun)
    assert names is None
    assert changes.since("models", "data", told) == (told, {})
