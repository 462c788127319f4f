"""`python -m tools.image_lock`: writes the digest of each base image into the Dockerfiles of `docker/`.

A base is `name:tag` in a FROM, or in an ARG that a FROM uses. It becomes `name:tag@sha256:...` with the current digest
of the tag, which an anonymous request to the registry returns.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import httpx

from config.data.content_tags import IMAGES
from simulator.tools.errors import ToolError, Unreachable

_BASE = re.compile(
    r"^(?:FROM(?:\s+--\S+)*\s+|ARG\s+\w+=)(?P<reference>[\w.-]+[\w./:-]*:[\w.-]+)(?:@sha256:[0-9a-f]{64})?"
)
_DOCKER_HUB = "registry-1.docker.io"
_MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
"""Accepted media types. Indexes come first, so that the digest covers all architectures."""
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Base:
    """A base image. `host` is the host of the registry's API, which is not `docker.io` for Docker Hub."""

    host: str
    repository: str
    tag: str


def parse(reference: str) -> Base:
    """Parses a reference with a tag. Without a host, the image is on Docker Hub; without a folder, in `library`."""
    name, _, tag = reference.rpartition(":")
    host, slash, path = name.partition("/")
    if slash and ("." in host or ":" in host):
        return Base(_DOCKER_HUB if host == "docker.io" else host, path, tag)
    return Base(_DOCKER_HUB, name if slash else f"library/{name}", tag)


def bases(dockerfile: str) -> list[str]:
    """Returns the references of a Dockerfile's bases, without digests.

    Ignores an ARG that no FROM uses, and names of other stages, which have no tag.
    """
    found = []
    for line in dockerfile.splitlines():
        match = _BASE.match(line)
        if match and (line.startswith("FROM") or _is_base(line, dockerfile)):
            found.append(match["reference"])
    return found


def digest(client: httpx.Client, base: Base) -> str:
    """Returns the tag's digest, sha256:... Raises Unreachable, or ToolError if the image does not exist."""
    url = f"https://{base.host}/v2/{base.repository}/manifests/{base.tag}"
    headers = {"Accept": ", ".join(_MANIFESTS)}
    try:
        answer = client.head(url, headers=headers)
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            token = _anonymous_token(client, answer.headers.get("www-authenticate", ""))
            answer = client.head(url, headers=headers | {"Authorization": f"Bearer {token}"})
        answer.raise_for_status()
    except httpx.HTTPStatusError as error:
        raise ToolError(f"{url} answered {error.response.status_code}. Check that the tag exists") from error
    except httpx.HTTPError as error:
        raise Unreachable(
            f"the registry {base.host} is not reachable ({error or type(error).__name__}). Nothing was changed.\n"
            "Run `make lock-images` on a machine that reaches all registries."
        ) from error
    found = str(answer.headers.get("docker-content-digest", ""))
    if not re.fullmatch("sha256:[0-9a-f]{64}", found):
        raise ToolError(f"{url} returned no digest")
    return found


def lock(client: httpx.Client, folder: Path = IMAGES) -> list[str]:
    """Writes digests into all Dockerfiles, or into none if a lookup fails. Returns the references. Raises ToolError."""
    dockerfiles = {file: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*/Dockerfile"))}
    references = sorted({reference for text in dockerfiles.values() for reference in bases(text)})
    locked = {reference: f"{reference}@{digest(client, parse(reference))}" for reference in references}
    for file, text in dockerfiles.items():
        for reference in bases(text):
            text = re.sub(rf"{re.escape(reference)}(@sha256:[0-9a-f]{{64}})?(?=\s|$)", locked[reference], text)
        file.write_text(text, encoding="utf-8")
    return list(locked.values())


def main() -> int:
    try:
        with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True) as client:
            for reference in lock(client):
                print(reference)
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("Images with a new digest of a base have a new tag. Build them with `make images`.")
    return 0


def _is_base(argument: str, dockerfile: str) -> bool:
    name = argument.removeprefix("ARG").strip().partition("=")[0]
    return re.search(rf"^FROM\s+(--\S+\s+)*\$\{{?{name}\b", dockerfile, re.MULTILINE) is not None


def _anonymous_token(client: httpx.Client, challenge: str) -> str:
    """Returns the token for `WWW-Authenticate: Bearer realm=...` (distribution, token specification)."""
    parts = dict(_CHALLENGE.findall(challenge))
    realm = parts.pop("realm", "")
    if not realm.startswith("https://"):
        raise ToolError(f"the registry does not allow anonymous access: {challenge or 'no challenge'}")
    answer = client.get(realm, params=parts)
    answer.raise_for_status()
    document = answer.json()
    token: str = document.get("token") or document.get("access_token") or ""
    return token


if __name__ == "__main__":
    sys.exit(main())
