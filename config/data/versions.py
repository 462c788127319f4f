"""Pinned versions of Kubernetes, charts, manifests and images, from `versions.yaml`."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from datetime import date
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from config.data import data

INSTALL = "install.yaml"


class _Pin(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Chart(_Pin):
    """A Helm chart from a Helm repository or, with `oci`, from an OCI registry."""

    name: str
    version: str
    read_from: str | None = None
    """The release that values keys and CRDs come from, if not the pinned one."""
    repository: str | None = None
    oci: str | None = None
    timeout_s: int

    @model_validator(mode="after")
    def _one_place(self) -> Chart:
        if (self.repository is None) == (self.oci is None):
            msg = "a chart has either a repository or an OCI reference"
            raise ValueError(msg)
        return self


class Kustomization(_Pin):
    """The source of an operator without a chart: a kustomization in a folder of upstream's Go module."""

    name: str
    version: str
    module: str
    folder: str
    namespace: str
    """The namespace of all its objects, in place of upstream's."""
    images: Sequence[str] = ()
    sum: str
    """The module's hash in Go's checksum database and go.sum files."""

    @property
    def address(self) -> str:
        """The URL of the pinned version in Go's mirror. Its content never changes, unlike the archive of a Git tag."""
        return f"https://proxy.golang.org/{self.module}/@v/{self.version}.zip"


class Image(_Pin):
    """A container image that the program uses directly."""

    name: str
    repository: str
    version: str


_Day = Annotated[date, BeforeValidator(date.fromisoformat)]


class Kubernetes(_Pin):
    newest: dict[str, str]
    """The newest patch of each minor version that AKS offers to any cluster."""
    default: str
    ends: dict[str, _Day]
    lts_ends: dict[str, _Day]
    platform_upgrades_since: _Day
    platform_upgrade_grace_days: int
    """Days between the end of support and AKS's upgrade of the cluster."""

    def offered(self, *, lts: bool) -> list[str]:
        return sorted({*self.newest, *(self.lts_ends if lts else ())}, key=lambda minor: int(minor.split(".")[1]))

    def end(self, version: str, *, lts: bool) -> date | None:
        """Returns the last day of support of a version, or None if unknown."""
        return (self.lts_ends if lts else self.ends).get(minor_of(version) or "")


def minor_of(version: str) -> str | None:
    """Returns the minor version of a version with or without patch, or None for other text."""
    match = re.fullmatch(r"(\d+\.\d+)(?:\.\d+)?", version)
    return match[1] if match else None


class IdentityMounts(_Pin):
    """The first versions that support mounts by a workload's identity."""

    driver: str
    addon: str
    """The first minor version of Kubernetes with a new enough driver in AKS's add-on."""

    def is_older(self, version: str) -> bool:
        """Returns whether a driver's version is too old; other text (`latest`) counts as new."""
        numbers, since = (re.findall(r"\d+", text)[:3] for text in (version, self.driver))
        return len(numbers) == len(since) and [int(part) for part in numbers] < [int(part) for part in since]

    def lacks_addon(self, kubernetes: str) -> bool:
        """Returns whether the add-on of this Kubernetes version is too old, or the version is invalid."""
        found, since = (re.match(r"(\d+)\.(\d+)", text) for text in (kubernetes, self.addon))
        return not (found and since) or [int(part) for part in found.groups()] < [int(part) for part in since.groups()]


class Coscheduling(_Pin):
    """The newest Kubernetes version that the scheduler in the chart of scheduler-plugins supports."""

    kubernetes: str

    def supports(self, version: str) -> bool:
        """Returns whether the scheduler supports this Kubernetes version. A scheduler may be at most one minor version
        older than the API server (kubernetes.io/releases/version-skew-policy). Unreadable versions count as supported.
        """
        found, newest = (re.match(r"(\d+)\.(\d+)", text) for text in (version, self.kubernetes))
        return not (found and newest) or tuple(map(int, found.groups())) <= tuple(map(int, newest.groups()))


class Versions(_Pin):
    kubernetes: Kubernetes
    identity_mounts: IdentityMounts
    coscheduling: Coscheduling
    charts: dict[str, Chart]
    manifests: dict[str, Kustomization]
    images: dict[str, Image]


@functools.cache
def versions() -> Versions:
    raw = data.read("versions.yaml")
    for kind in ("charts", "manifests", "images"):
        raw[kind] = {name: {"name": name, **pin} for name, pin in raw[kind].items()}
    return Versions.model_validate(raw)
