"""Manifests of operators that have no chart, loaded before any resource is declared.

If `charts.source` is set, the manifests in that folder are used unchanged, like charts. Otherwise kubectl builds the
manifests from the pinned Go module, like upstream's `kubectl apply -k`.
"""

from __future__ import annotations

import functools
import json
import subprocess
import tempfile
import zlib
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import pulumi
import yaml

from components.operators import Operator
from components.preflight import arm
from config.data.data import parsed_all
from config.data.versions import INSTALL, Kustomization, versions
from config.problems.errors import lines
from config.problems.fixes import set_command
from config.schema.models import Settings

Manifest = dict[str, Any]
_FOLDER = ".simulator/upstream-charts"


def check_manifests(settings: Settings, operators: Mapping[str, Operator[Any]]) -> None:
    """Raises pulumi.RunError if manifests of an enabled operator cannot be loaded or are invalid."""
    for name in versions().manifests.keys() & operators.keys():
        if operators[name].is_wanted(settings):
            manifests(name, settings.charts.source)


@functools.cache
def manifests(name: str, source: str | None) -> tuple[Manifest, ...]:
    """Returns all objects of an operator's release, which callers must not modify. Raises pulumi.RunError."""
    pin = versions().manifests[name]
    place = f"{source.rstrip('/')}/{name}/{INSTALL}" if source else pin.address
    text = _read(place) if source else _download(pin)
    try:
        found = tuple(each for each in parsed_all(text) if each is not None)
        is_valid = bool(found) and all(
            each["apiVersion"] and each["kind"] and each["metadata"]["name"] for each in found
        )
    except (yaml.YAMLError, KeyError, TypeError):
        is_valid = False
    if not is_valid:
        raise pulumi.RunError(f"{place} does not contain Kubernetes objects. Nothing was changed.")
    return found


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise pulumi.RunError(f"{file} cannot be read: {error}. Nothing was changed.") from None


def _download(pin: Kustomization) -> str:
    try:
        status, content = arm.fetch(pin.address)
        why = "" if status == HTTPStatus.OK else f"it answers {status}"
    except (OSError, ValueError) as error:
        why = str(error)
    if why:
        raise pulumi.RunError(download_error(pin, why))
    if (found := checksum(content)) != pin.sum:
        raise pulumi.RunError(checksum_error(pin, found))
    return build_with_kubectl(pin, content)


def download_error(pin: Kustomization, why: str) -> str:
    folder = set_command(("charts", "source"), _FOLDER).text(pulumi.get_stack())
    return lines(
        f"{pin.name} {pin.version} has no chart, and its released manifests cannot be downloaded.",
        f"{pin.address}: {why}",
        "Nothing was changed. Download all charts on a machine with internet access, and then use that folder:",
        "    make upstream-charts",
        f"    {folder}",
    )


def checksum_error(pin: Kustomization, found: str) -> str:
    return lines(
        f"the manifests of {pin.name} {pin.version} do not match the pinned checksum: {pin.address}",
        f"has {found}, but config/data/versions.yaml has {pin.sum}.",
        "Nothing was changed. A release should not change, so ask upstream before you pin the new checksum:",
        f"    go mod download -json {pin.module}@{pin.version}",
    )


def checksum(archive: bytes) -> str:
    """Returns Go's `h1` checksum of a module (golang.org/x/mod, sumdb/dirhash), or a text if it has no checksum."""
    try:
        with ZipFile(BytesIO(archive)) as module:
            sums = [f"{sha256(module.read(name)).hexdigest()}  {name}\n" for name in sorted(module.namelist())]
    except (BadZipFile, EOFError, RuntimeError, ValueError, zlib.error):  # ZipFile's errors for damaged archives
        return "no checksum, because it is not a zip archive"
    return f"h1:{b64encode(sha256(''.join(sums).encode()).digest()).decode()}"


def build_with_kubectl(pin: Kustomization, archive: bytes) -> str:
    """Returns the YAML of all objects, with the pinned namespace. Raises pulumi.RunError if kubectl fails."""
    with tempfile.TemporaryDirectory() as folder:
        with ZipFile(BytesIO(archive)) as module:
            module.extractall(folder)
        # The module's folder name begins with a host, so kustomize would treat it as a remote repository.
        Path(folder, f"{pin.module}@{pin.version}").rename(Path(folder, "module"))
        images = [{"name": image, "newTag": pin.version} for image in pin.images]
        kustomization = {"resources": [f"module/{pin.folder}"], "namespace": pin.namespace, "images": images}
        Path(folder, "kustomization.yaml").write_text(json.dumps(kustomization), encoding="utf-8")
        try:
            done = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            what = f"PATH has no kubectl, which builds the manifests of {pin.name} {pin.version}. Nothing was changed."
            raise pulumi.RunError(f"{what} Install it:\n    az aks install-cli") from None
    if done.returncode:
        raise pulumi.RunError(f"{pin.address}: kubectl kustomize failed: {done.stderr.strip()}. Nothing was changed.")
    return done.stdout
