"""`python -m simulator.tools.manifest_lock`: writes the sha256 of released manifests into config/facts/versions.yaml.

Of the pinned versions, as they can be fetched now; a checksum that is there already has to agree or to be taken out by
hand, since a release does not change by itself.
"""

from __future__ import annotations

import re
import sys
from hashlib import sha256
from pathlib import Path

import httpx

from config.facts.data import FOLDER
from config.facts.versions import Manifests, versions
from simulator.tools.errors import ToolError, Unreachable

VERSIONS = FOLDER / "versions.yaml"
_TIMEOUT_S = 60.0


def fetch(client: httpx.Client, pin: Manifests) -> bytes:
    """Raises Unreachable, or ToolError for what is not there or is not what was pinned."""
    try:
        answer = client.get(pin.address)
        answer.raise_for_status()
    except httpx.HTTPStatusError as error:
        raise ToolError(f"{pin.address} answered {error.response.status_code}") from error
    except httpx.HTTPError as error:
        raise Unreachable(f"{pin.address} cannot be reached from here ({error or type(error).__name__}).") from error
    digest = sha256(answer.content).hexdigest()
    if pin.sha256 not in (None, digest):
        raise ToolError(f"{pin.address} has the sha256 {digest}, and config/facts/versions.yaml says {pin.sha256}")
    return answer.content


def lock(client: httpx.Client, file: Path = VERSIONS) -> list[str]:
    """Writes all checksums, or none if one cannot be had; what each operator's is. Raises ToolError."""
    pins = {name: pin for name, pin in versions().manifests.items() if isinstance(pin, Manifests)}
    found = {name: sha256(fetch(client, pin)).hexdigest() for name, pin in pins.items()}
    text = file.read_text(encoding="utf-8")
    for name, digest in found.items():
        text = re.sub(rf"(?ms)(^manifests:.*?^  {name}:$.*?^    sha256:)[^\n]*", rf"\g<1> {digest}", text, count=1)
    file.write_text(text, encoding="utf-8")
    return [f"{name} {digest}" for name, digest in found.items()]


def main() -> int:
    """0, or 1 after telling what is wrong."""
    try:
        with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True) as client:
            for line in lock(client):
                print(line)
    except ToolError as error:
        print(f"error: {error}\nNothing was changed.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
