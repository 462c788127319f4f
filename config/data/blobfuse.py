"""Mounts of blob containers: the CSI driver, and mount options from the profiles in `blobfuse.yaml`."""

from __future__ import annotations

import functools

from config.data import data

DRIVER = "blob.csi.azure.com"
ACCOUNT = "blobs"
AUDIENCE = "api://AzureADTokenExchange"
"""The audience of the tokens that the driver gets for mounts by identity (`tokenRequests` of its CSIDriver object)."""
_WRITTEN_WITHOUT = 4
_MOST_BLOCKS = 50_000
Profile = dict[str, bool | int | float | str]
"""Flags of `blobfuse2 mount`, without dashes."""


@functools.cache
def profiles() -> dict[str, Profile]:
    found: dict[str, Profile] = data.read("blobfuse.yaml")["profiles"]
    return found


def remembers(profile: str) -> bool:
    """Returns whether a node may briefly see stale metadata after another node changes a file."""
    flags = profiles()[profile]
    timeouts = (flags.get(f"{of}-timeout") for of in ("attr", "entry", "negative"))
    return any(timeout != 0 for timeout in timeouts) or flags.get("use-attr-cache") is not False


def has_folder(profile: str) -> bool:
    return "block-cache-path" in profiles()[profile]


def files_at_once(profile: str) -> int:
    """Returns how many files a node can write at the same time: each open file occupies blocks of blobfuse2's pool.

    A file uses as many blocks as it prefetches, or four without prefetching. One block is reserved (azure-storage-fuse
    at blobfuse2-2.5.4, component/block_cache: block_cache.go, getOrCreateBlock, MIN_WRITE_BLOCK; blockpool.go,
    NewBlockPool). If no block is free for 5 seconds, a write fails with EIO.
    """
    flags = profiles()[profile]
    blocks = int(float(flags["block-cache-pool-size"]) / float(flags["block-cache-block-size"])) - 1
    return blocks // (int(flags["block-cache-prefetch"]) or _WRITTEN_WITHOUT)


def largest_file(profile: str) -> float:
    """Returns the maximum size of a file in bytes: a blob has 50,000 blocks at most."""
    return _MOST_BLOCKS * float(profiles()[profile]["block-cache-block-size"]) * 2**20


def mount_options(profile: str, volume: str, *, hierarchical_namespace: bool) -> list[str]:
    """Returns the mount options of a volume; raises KeyError for an unknown profile.

    Pods of users other than root need `allow_other`. Without `--use-adls`, blobfuse2 ignores the hierarchical namespace
    of an account (kubernetes-sigs/blob-csi-driver, docs/driver-parameters.md).
    """
    flags = {**profiles()[profile], "use-adls": hierarchical_namespace}
    return ["-o allow_other", *(f"--{flag}={_text(value).format(volume=volume)}" for flag, value in flags.items())]


def _text(value: bool | int | float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
