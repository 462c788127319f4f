"""The action `runCommand`: kubectl or helm for users who cannot reach the API server.

Source: AKS's page on `az aks command invoke`; shapes: azure-rest-api-specs, ManagedClusters_RunCommand.
"""

from __future__ import annotations

import base64
import binascii
import io
import shlex
import tempfile
import uuid
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.store import Body, Record
from simulator.azure.types.agent_pool import life

RESULTS = "commandResults"
_PROGRAMS = ("kubectl", "helm")
_OPERATORS = set("|&;<>()$`\n")


def run(world: World, cluster: Record, body: Body) -> Record:
    """Runs one kubectl or helm command and returns the stored result. Raises ArmError (400) for other commands."""
    life.check_runs(cluster, "running a command")
    if cluster.properties.get("apiServerAccessProfile", {}).get("disableRunCommand"):
        raise bad_request("Run command is disabled on this cluster (apiServerAccessProfile.disableRunCommand).")
    properties: Body = {"provisioningState": "Succeeded", "startedAt": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}
    with tempfile.TemporaryDirectory() as folder:
        _unpack(body.get("context") or "", Path(folder))
        argv, token = _argv(str(body.get("command") or "")), str(body.get("clusterToken") or "")
        try:
            properties["exitCode"], properties["logs"] = world.backend.run(cluster.id.text, argv, Path(folder), token)
        except TimeoutError as error:
            properties |= {"provisioningState": "Failed", "reason": str(error)}
    properties["finishedAt"] = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    result = Record(cluster.id.child(RESULTS, uuid.uuid4().hex), {"properties": properties})
    world.store.put(result)
    return result


def _argv(command: str) -> list[str]:
    """Azure uses a shell. The simulator does not, to protect this machine."""
    try:
        argv = shlex.split(command)
    except ValueError:
        argv = []
    if not argv or argv[0] not in _PROGRAMS or _OPERATORS & set(command):
        message = f"The simulator runs a single command of {' or '.join(_PROGRAMS)}, without a shell, not '{command}'."
        raise bad_request(message, target="command")
    return argv


def _unpack(context: str, folder: Path) -> None:
    """Unpacks the files of `--file`, a zip archive in base64."""
    try:
        if context:
            with zipfile.ZipFile(io.BytesIO(base64.b64decode(context, validate=True))) as archive:
                archive.extractall(folder)
    except (binascii.Error, ValueError, zipfile.BadZipFile) as error:
        raise bad_request("The property 'context' must be a zip archive in base64.", target="context") from error
