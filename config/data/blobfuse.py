"""How blob containers are mounted: the driver, and the profiles of `blobfuse.yaml` as mount options."""

from __future__ import annotations

import functools

from config.data import data

DRIVER = "blob.csi.azure.com"
ACCOUNT = "blobs"
"""The service account of pods that mount containers by identity."""
AUDIENCE = "api://AzureADTokenExchange"
"""Of the tokens that the driver asks kubelets for (its CSIDriver's tokenRequests), to mount by identity."""
_WRITTEN_WITHOUT = 4
_MOST_BLOCKS = 50_000
Profile = dict[str, bool | int | float | str]
"""Flags of `blobfuse2 mount`, without the dashes."""


@functools.cache
def profiles() -> dict[str, Profile]:
    """All profiles by name."""
    found: dict[str, Profile] = data.read("blobfuse.yaml")["profiles"]
    return found


def remembers(profile: str) -> bool:
    """Whether a node goes on for a while with what it saw of a name, or did not see, when another node changes that."""
    flags = profiles()[profile]
    timeouts = (flags.get(f"{of}-timeout") for of in ("attr", "entry", "negative"))
    return any(timeout != 0 for timeout in timeouts) or flags.get("use-attr-cache") is not False


def has_folder(profile: str) -> bool:
    """Whether a mount keeps blocks on the node's disk, in a folder that it must have for itself."""
    return "block-cache-path" in profiles()[profile]


def files_at_once(profile: str) -> int:
    """Files that a node can write at the same time, however large: each keeps blocks of the pool until it is closed.

    As many as are read ahead, or four where none are, and one of the pool is never lent (azure-storage-fuse at
    blobfuse2-2.5.4, component/block_cache: block_cache.go, getOrCreateBlock, MIN_WRITE_BLOCK; blockpool.go,
    NewBlockPool). With none left for 5 seconds, a write ends with EIO.
    """
    flags = profiles()[profile]
    blocks = int(float(flags["block-cache-pool-size"]) / float(flags["block-cache-block-size"])) - 1
    return blocks // (int(flags["block-cache-prefetch"]) or _WRITTEN_WITHOUT)


def largest_file(profile: str) -> float:
    """Bytes of the largest file that can be written: a blob has 50,000 blocks at most."""
    return _MOST_BLOCKS * float(profiles()[profile]["block-cache-block-size"]) * 2**20


def mount_options(profile: str, volume: str, *, hierarchical_namespace: bool) -> list[str]:
    """Mount options of a volume. Raises KeyError for a profile that there is not.

    Pods run as any user, so others than root may look in. Without `--use-adls`, an account with a hierarchical
    namespace is mounted as one without (kubernetes-sigs/blob-csi-driver, docs/driver-parameters.md).
    """
    flags = {**profiles()[profile], "use-adls": hierarchical_namespace}
    return ["-o allow_other", *(f"--{flag}={_text(value).format(volume=volume)}" for flag, value in flags.items())]


def _text(value: bool | int | float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
