"""Manifests of a kustomization, which kubectl makes out of a Go module: what upstream has as `kubectl apply -k`."""

from __future__ import annotations

import json
import subprocess
import tempfile
from base64 import b64encode
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import pulumi

from config.facts.versions import Kustomization


def sum_of(archive: bytes) -> str:
    """A module's checksum by Go's algorithm `h1` (golang.org/x/mod, sumdb/dirhash); for what is no archive a text."""
    try:
        with ZipFile(BytesIO(archive)) as module:
            lines = [f"{sha256(module.read(name)).hexdigest()}  {name}\n" for name in sorted(module.namelist())]
    except (BadZipFile, NotImplementedError, RuntimeError):
        return "of no archive"
    return f"h1:{b64encode(sha256(''.join(lines).encode()).digest()).decode()}"


def made_by_kubectl(pin: Kustomization, archive: bytes) -> str:
    """All of its objects, in the pinned namespace. Raises pulumi.RunError where kubectl is not there or refuses."""
    with tempfile.TemporaryDirectory() as folder:
        with ZipFile(BytesIO(archive)) as module:
            module.extractall(folder)
        # By its own name, which begins with a host's, kustomize would take the folder for a repository to be fetched.
        Path(folder, f"{pin.module}@{pin.version}").rename(Path(folder, "module"))
        images = [{"name": image, "newTag": pin.version} for image in pin.images]
        whole = {"resources": [f"module/{pin.folder}"], "namespace": pin.namespace, "images": images}
        Path(folder, "kustomization.yaml").write_text(json.dumps(whole), encoding="utf-8")
        try:
            done = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise pulumi.RunError(without_kubectl(pin)) from None
    if done.returncode:
        raise pulumi.RunError(f"{pin.address}: kubectl kustomize says: {done.stderr.strip()}. Nothing was changed.")
    return done.stdout


def without_kubectl(pin: Kustomization) -> str:
    """What is wrong, and what mends it."""
    what = f"kubectl makes the manifests of {pin.name} {pin.version}, and there is none on PATH. Nothing was changed."
    return f"{what} Install it:\n    az aks install-cli"
