"""Parses the options of blobfuse2 in a PersistentVolume's mountOptions, with the errors of blobfuse2.

Source: github.com/Azure/azure-storage-fuse at 74098e3 (2.5.6): cmd/mount.go, component/block_cache/block_cache.go.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

_FUSE_REFUSED = (
    "Invalid FUSE options. Allowed FUSE configurations are: `-o attr_timeout=TIMEOUT`, `-o negative_timeout=TIMEOUT`, "
    "`-o entry_timeout=TIMEOUT` `-o allow_other`, `-o allow_root`, `-o umask=PERMISSIONS -o default_permissions`, "
    "`-o ro`"
)
_BOOLEANS = {"1", "t", "T", "true", "TRUE", "True", "0", "f", "F", "false", "FALSE", "False"}
_MIN_PREFETCH = 11
_REMEMBERED_S = "120"
_CONVERT: dict[str, tuple[str, Callable[[str], object]]] = {
    "uint": ("ParseUint", lambda text: _unsigned(text)),
    "int": ("ParseInt", int),
    "float": ("ParseFloat", float),
}


class BlobfuseError(Exception):
    """An error after which blobfuse2 exits with 1. The text is without "Error: "."""


@dataclass
class Options:
    """The flags of a mount, each with its last value, and the options after -o."""

    flags: dict[str, str] = field(default_factory=dict)
    fuse: list[str] = field(default_factory=list)

    def on(self, name: str, default: str = "false") -> bool:
        return self.flags.get(name, default) in {"1", "t", "T", "true", "TRUE", "True"}

    @property
    def remembers_s(self) -> int:
        """The longest time in seconds that the kernel or blobfuse2 caches a name.

        Defaults: component/libfuse/libfuse.go and component/attr_cache/attr_cache.go.
        """
        fuse = dict(text.split("=", 1) for text in self.fuse if "=" in text)
        kernel = [
            int(fuse.get(f"{of}_timeout", self.flags.get(f"{of}-timeout", _REMEMBERED_S)))
            for of in ("attr", "entry", "negative")
        ]
        if "direct_io" in self.fuse:
            return 0
        cached = self.flags.get("attr-cache-timeout", _REMEMBERED_S) if self.on("use-attr-cache", "true") else 0
        return max(*kernel, int(cached))

    @property
    def read_only(self) -> bool:
        return self.on("read-only") or self.on("preload") or any(text in ("ro", "ro=true") for text in self.fuse)


@functools.cache
def _known() -> tuple[dict[str, str], tuple[str, ...]]:
    data = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    fuse = tuple(data.pop("fuse"))
    return {name: kind for kind, names in data.items() for name in names}, fuse


def parse(mount_options: Sequence[str]) -> Options:
    """Parses mount options. An entry may contain several options, as in the CSI driver. Raises BlobfuseError."""
    options = Options()
    words = iter(" ".join(mount_options).split())
    for word in words:
        if word.startswith("--"):
            _flag(word[2:], words, options)
        elif word.startswith("-o"):
            options.fuse += (word[2:].removeprefix("=") or _next(words, "'o' in -o")).split(",")
        elif word.startswith("-d"):
            continue
        elif word.startswith("-"):
            raise BlobfuseError(f"unknown shorthand flag: '{word[1:2]}' in {word}")
        else:
            raise BlobfuseError(f"accepts 1 arg(s), received 2: {word}")
    for text in options.fuse:
        if not text.startswith(_known()[1]):
            raise BlobfuseError(_FUSE_REFUSED)
    _check_block_cache(options)
    return options


def _flag(text: str, words: Iterator[str], options: Options) -> None:
    name, equals, value = text.partition("=")
    kind = _known()[0].get(name)
    if kind is None:
        raise BlobfuseError(f"unknown flag: --{name}")
    if not equals:
        value = "true" if kind == "bool" else _next(words, f"--{name}")
    if kind == "bool" and value not in _BOOLEANS:
        raise _invalid(name, value, "ParseBool")
    if kind in _CONVERT:
        parser, convert = _CONVERT[kind]
        try:
            convert(value)
        except ValueError:
            raise _invalid(name, value, parser) from None
    options.flags[name] = value


def _check_block_cache(options: Options) -> None:
    if not options.on("block-cache"):
        return
    prefetch = int(options.flags.get("block-cache-prefetch", _MIN_PREFETCH))
    if 0 < prefetch < _MIN_PREFETCH:
        raise BlobfuseError("failed to initialize new pipeline [config error in block_cache [invalid prefetch count]]")
    pool = int(options.flags.get("block-cache-pool-size", "0"))
    size = float(options.flags.get("block-cache-block-size", "16"))
    if pool and prefetch * size > pool:
        why = "memory limit too low for configured prefetch"
        raise BlobfuseError(f"failed to initialize new pipeline [config error in block_cache [{why}]]")


def _next(words: Iterator[str], name: str) -> str:
    value = next(words, None)
    if value is None:
        raise BlobfuseError(f"flag needs an argument: {name}")
    return value


def _invalid(name: str, value: str, parser: str) -> BlobfuseError:
    why = f'strconv.{parser}: parsing "{value}": invalid syntax'
    return BlobfuseError(f'invalid argument "{value}" for "--{name}" flag: {why}')


def _unsigned(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)
