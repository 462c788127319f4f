from __future__ import annotations

import pytest

from simulator.kubelet.csi.blobfuse import BlobfuseError, parse
from tests.support.case_files import case_table

OLMO = [  # as in edwardsp/ai-on-aks: 4 KB blocks, no prefetch
    "-o allow_other",
    "--block-cache",
    "--block-cache-block-size=0.004",
    "--block-cache-pool-size=1024",
    "--block-cache-prefetch=0",
    "--cancel-list-on-mount-seconds=10",
    "--log-level=LOG_WARNING",
]


def test_accepts_the_options_of_the_block_cache() -> None:
    options = parse(OLMO)
    assert options.on("block-cache")
    assert options.fuse == ["allow_other"]
    assert not options.read_only


@pytest.mark.parametrize("options", [["--read-only"], ["--read-only=true"], ["-o ro"], ["-o allow_other,ro"]])
def test_mounts_read_only(options: list[str]) -> None:
    assert parse(options).read_only


@case_table(__file__, "refused")
def test_rejects_invalid_options(option: str, words: str) -> None:
    with pytest.raises(BlobfuseError) as refused:
        parse([option])
    assert words in str(refused.value)


@case_table(__file__, "block_caches")
def test_rejects_an_invalid_block_cache(options: list[str], words: str) -> None:
    with pytest.raises(BlobfuseError, match=words):
        parse(options)


@case_table(__file__, "remembered")
def test_names_are_cached_as_long_as_the_options_state(options: list[str], seconds: int) -> None:
    assert parse(options).remembers_s == seconds
