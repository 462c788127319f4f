"""Downloads released executables, and verifies upstream's checksums."""

from __future__ import annotations

import hashlib
import re
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import httpx

from simulator.tools.catalogue import Release, Tool
from simulator.tools.errors import ToolError, Unreachable

_TIMEOUT = httpx.Timeout(30.0, connect=5.0)  # seconds
_PROBE_SECONDS = 3.0
_CHUNK_BYTES = 1 << 20
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")

Report = Callable[[str], None]


def internet_is_open(probe: str) -> bool:
    """Reports whether `probe` answers within a few seconds. Called once for all tools."""
    try:
        return httpx.head(probe, timeout=_PROBE_SECONDS, follow_redirects=True).is_success
    except httpx.HTTPError:
        return False


def fetch(tool: Tool, release: Release, folder: Path, report: Report) -> None:
    """Downloads the release into `folder`. Raises Unreachable, or ToolError for a wrong checksum."""
    url, checksums = tool.fill(release.url), tool.fill(release.checksums)
    file_name = url.rsplit("/", 1)[-1]
    try:
        expected = published_checksum(_text(checksums), file_name)
        if not expected:
            raise ToolError(f"{checksums} has no SHA-256 checksum of {file_name}.")
        download = folder / file_name
        actual = _download(url, download, report)
    except httpx.HTTPError as error:
        raise Unreachable(f"{tool.label} cannot be downloaded from {url}: {error or type(error).__name__}") from error
    if actual != expected:
        raise ToolError(
            f"The download of {tool.label} has a wrong checksum, and was deleted.\n"
            f"  {url}\n  SHA-256 is        {actual}\n  SHA-256 should be {expected} ({checksums})\n"
            "Try again. If this persists, something on the way, such as a proxy, changes downloads."
        )
    if release.members:
        _unpack(download, [tool.fill(member) for member in release.members], folder)
    else:
        download.rename(folder / tool.name)
    for file in folder.iterdir():
        file.chmod(0o755)


def published_checksum(text: str, file_name: str) -> str | None:
    """Returns the checksum of a file from lines `<sha256>  <file>` or from a lone checksum, or None."""
    for line in text.splitlines():
        found = _SHA256.search(line)
        if found and line.split()[-1].lstrip("*") in (file_name, found.group()):
            return found.group()
    return None


def _text(url: str) -> str:
    response = httpx.get(url, timeout=_TIMEOUT, follow_redirects=True)
    return response.raise_for_status().text


def _download(url: str, target: Path, report: Report) -> str:
    digest, done = hashlib.sha256(), 0
    with httpx.stream("GET", url, timeout=_TIMEOUT, follow_redirects=True) as response, target.open("wb") as file:
        response.raise_for_status()
        total = int(response.headers.get("content-length", 0))
        for chunk in response.iter_raw(_CHUNK_BYTES):
            file.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            report(
                f"downloading, {done / 1e6:.0f} of {total / 1e6:.0f} MB"
                if total
                else f"downloading, {done / 1e6:.0f} MB"
            )
    return digest.hexdigest()


def _unpack(download: Path, members: list[str], folder: Path) -> None:
    if zipfile.is_zipfile(download):
        with zipfile.ZipFile(download) as archive:
            found = {name: archive.read(name) for name in archive.namelist() if name in members}
    else:
        with tarfile.open(download) as tar:
            found = {each.name: file.read() for each in tar if each.name in members and (file := tar.extractfile(each))}
    if absent := [member for member in members if member not in found]:
        raise ToolError(f"{download.name} does not contain {', '.join(absent)}.")
    for member, content in found.items():
        (folder / Path(member).name).write_bytes(content)
    download.unlink()
