"""mountOptions as blobfuse2 reads and refuses them."""

from __future__ import annotations

import pytest

from simulator.kubelet.csi.blobfuse import BlobfuseError, parse

OLMO = [  # as in the seed: 4 KB blocks, no prefetch
    "-o allow_other",
    "--block-cache",
    "--block-cache-block-size=0.004",
    "--block-cache-pool-size=1024",
    "--block-cache-prefetch=0",
    "--cancel-list-on-mount-seconds=10",
    "--log-level=LOG_WARNING",
]


def test_the_options_of_the_block_cache_are_known() -> None:
    options = parse(OLMO)
    assert options.on("block-cache")
    assert options.fuse == ["allow_other"]
    assert not options.read_only


@pytest.mark.parametrize("options", [["--read-only"], ["--read-only=true"], ["-o ro"], ["-o allow_other,ro"]])
def test_read_only(options: list[str]) -> None:
    assert parse(options).read_only


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--block-cash", "unknown flag: --block-cash"),
        ("--attr-cache-timeout=soon", 'invalid argument "soon" for "--attr-cache-timeout" flag: strconv.ParseUint'),
        ("--block-cache=maybe", 'invalid argument "maybe" for "--block-cache" flag: strconv.ParseBool'),
        ("--block-cache-block-size=big", "strconv.ParseFloat"),
        ("--tmp-path", "flag needs an argument: --tmp-path"),
        ("-o uidd=5", "Invalid FUSE options"),
        ("block-cache", "accepts 1 arg(s)"),
        ("-x", "unknown shorthand flag: 'x' in -x"),
    ],
)
def test_what_blobfuse2_refuses(option: str, words: str) -> None:
    with pytest.raises(BlobfuseError) as refused:
        parse([option])
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--block-cache", "--block-cache-prefetch=4"], "invalid prefetch count"),
        (["--block-cache", "--block-cache-pool-size=100"], "memory limit too low for configured prefetch"),
    ],
)
def test_a_block_cache_that_cannot_be(options: list[str], words: str) -> None:
    with pytest.raises(BlobfuseError, match=words):
        parse(options)


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ([], 120),
        (["--negative-timeout=0"], 120),
        (["--attr-timeout=0", "--entry-timeout=0", "--negative-timeout=0"], 120),  # blobfuse2's own cache
        (["--attr-timeout=0", "--entry-timeout=0", "--negative-timeout=0", "--use-attr-cache=false"], 0),
        (["-o attr_timeout=0 -o entry_timeout=0 -o negative_timeout=5", "--use-attr-cache=false"], 5),
        (["-o direct_io"], 0),
    ],
)
def test_how_long_names_are_remembered(options: list[str], seconds: int) -> None:
    assert parse(options).remembers_s == seconds
