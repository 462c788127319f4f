"""Pinned versions of Kubernetes, charts, manifests and images. The data is in `versions.yaml`."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from datetime import date
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from config.data import data

INSTALL = "install.yaml"
"""What a file of released manifests is called, in a folder with its operator's name."""


class _Pin(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Chart(_Pin):
    """A Helm chart: from a classic repository or, with `oci`, from a registry."""

    name: str
    version: str
    read_from: str | None = None
    """The release whose values keys and CRDs were read, if it is not the pinned one."""
    repository: str | None = None
    oci: str | None = None
    timeout_s: int
    """How long its release may take to become ready, seconds."""

    @model_validator(mode="after")
    def _one_place(self) -> Chart:
        if (self.repository is None) == (self.oci is None):
            msg = "a chart has either a repository or an OCI reference"
            raise ValueError(msg)
        return self


class Kustomization(_Pin):
    """What an operator without a chart is installed from: a kustomization in a folder of upstream's Go module."""

    name: str
    version: str
    module: str
    folder: str
    namespace: str
    """Where all of it goes, in place of its own."""
    images: Sequence[str] = ()
    """Those that get the version as their tag when upstream releases."""
    sum: str
    """Of the module, as Go's checksum database and every go.sum have it."""

    @property
    def address(self) -> str:
        """Where Go's mirror has the pinned version: other than an archive of a tag, it never changes."""
        return f"https://proxy.golang.org/{self.module}/@v/{self.version}.zip"


class Image(_Pin):
    """A container image that the program names itself."""

    name: str
    repository: str
    version: str


_Day = Annotated[date, BeforeValidator(date.fromisoformat)]


class Kubernetes(_Pin):
    """Kubernetes minor versions of AKS."""

    newest: dict[str, str]
    """The newest patch of each minor version that AKS offers to any cluster."""
    default: str
    ends: dict[str, _Day]
    """The last day of support of each minor version."""
    lts_ends: dict[str, _Day]
    """The last day of AKS's long-term support."""
    platform_upgrades_since: _Day
    """The first day on which AKS upgrades unsupported clusters itself."""
    platform_upgrade_grace_days: int
    """Days between the end of support and that upgrade."""

    def offered(self, *, lts: bool) -> list[str]:
        """Returns the minor versions that a new cluster can have, with or without long-term support."""
        return sorted({*self.newest, *(self.lts_ends if lts else ())}, key=lambda minor: int(minor.split(".")[1]))

    def end(self, version: str, *, lts: bool) -> date | None:
        """Returns the last day of support of a version, or None if it is not known."""
        return (self.lts_ends if lts else self.ends).get(minor_of(version) or "")


def minor_of(version: str) -> str | None:
    """Returns the minor version of a version, which may have a patch, or None for other text."""
    match = re.fullmatch(r"(\d+\.\d+)(?:\.\d+)?", version)
    return match[1] if match else None


class IdentityMounts(_Pin):
    """From when on blobs can be mounted by a workload's identity."""

    driver: str
    """Version of the blob CSI driver."""
    addon: str
    """Minor version of Kubernetes, from which on AKS's add-on has such a driver."""

    def is_older(self, version: str) -> bool:
        """Whether a version of the driver lacks it. One that is no version (`latest`) is trusted."""
        numbers, since = (re.findall(r"\d+", text)[:3] for text in (version, self.driver))
        return len(numbers) == len(since) and [int(part) for part in numbers] < [int(part) for part in since]

    def lacks_addon(self, kubernetes: str) -> bool:
        """Whether the add-on of this version of Kubernetes is too old, or there is no such version."""
        found, since = (re.match(r"(\d+)\.(\d+)", text) for text in (kubernetes, self.addon))
        return not (found and since) or [int(part) for part in found.groups()] < [int(part) for part in since.groups()]


class Coscheduling(_Pin):
    """What the chart of scheduler-plugins goes with."""

    kubernetes: str
    """The newest minor version of Kubernetes."""

    def supports(self, version: str) -> bool:
        """Whether its scheduler may serve that Kubernetes: it may be one minor version older than the API server, and
        no more (kubernetes.io/releases/version-skew-policy). A version that cannot be read is trusted.
        """
        found, newest = (re.match(r"(\d+)\.(\d+)", text) for text in (version, self.kubernetes))
        return not (found and newest) or tuple(map(int, found.groups())) <= tuple(map(int, newest.groups()))


class Versions(_Pin):
    """All pins."""

    kubernetes: Kubernetes
    identity_mounts: IdentityMounts
    coscheduling: Coscheduling
    charts: dict[str, Chart]
    manifests: dict[str, Kustomization]
    images: dict[str, Image]


@functools.cache
def versions() -> Versions:
    """The pins, read once."""
    raw = data.read("versions.yaml")
    for kind in ("charts", "manifests", "images"):
        raw[kind] = {name: {"name": name, **pin} for name, pin in raw[kind].items()}
    return Versions.model_validate(raw)
