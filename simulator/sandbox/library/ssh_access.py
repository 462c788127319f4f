"""Checks whether one pod can log in to another by ssh, with the client's errors."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from pathlib import Path

from simulator.sandbox.library import keys, view

PORT = 22
FOLDER = Path("/root/.ssh")


class SshError(Exception):
    """An error message of ssh, with exit code 255."""


def connect(known: view.View, host: str, options: Mapping[str, str], folder: Path = FOLDER) -> view.Pod:
    """Returns the host's pod if its ssh server would accept this pod. Raises SshError.

    Messages are from OpenSSH (sshconnect.c, ssh_connect_direct; ssh.c, resolve_host) and the C library (errno).
    """
    settings = {**_configured(folder / "config", host), **options}
    target = settings.get("hostname", host)
    port = int(settings.get("port", PORT))
    pod = known.resolve(target)
    if pod is None and not view.is_address(target):
        raise SshError(f"ssh: Could not resolve hostname {target}: Name or service not known")
    if pod is None or not known.node_of(pod)["ready"]:
        # Not "No route to host": Azure's virtual networks are layer-3 overlays (Azure's FAQ), so ARP has no timeouts.
        raise SshError(f"ssh: connect to host {target} port {port}: Connection timed out")
    if not pod.running or pod.sshd is None or pod.sshd["port"] != port:
        raise SshError(f"ssh: connect to host {target} port {port}: Connection refused")
    if settings.get("stricthostkeychecking", "ask") not in ("no", "off", "accept-new"):
        raise SshError("Host key verification failed.")  # no user can confirm the key
    if _own_key(Path(settings.get("identityfile", folder / "id_rsa"))) not in pod.sshd["authorized_keys"]:
        raise SshError(f"root@{target}: Permission denied (publickey).")
    return pod


def _own_key(file: Path) -> str | None:
    if not file.exists():
        return None
    mode = file.stat().st_mode & 0o777
    if mode & 0o077:
        raise SshError(
            f"Permissions 0{mode:o} for '{file}' are too open; ssh ignores private keys that others may read.\n"
            f'Load key "{file}": bad permissions\nPermission denied (publickey).'
        )
    try:
        return keys.public_key(file.read_text())
    except keys.BadKey as error:
        raise SshError(f'Load key "{file}": {error}\nPermission denied (publickey).') from error


def _configured(file: Path, host: str) -> dict[str, str]:
    """If a setting has several values, the first applies, as in ssh."""
    settings: dict[str, str] = {}
    applies = True
    for line in file.read_text().splitlines() if file.exists() else []:
        name, _, value = line.strip().replace("=", " ", 1).partition(" ")
        if name.lower() == "host":
            applies = any(fnmatch.fnmatchcase(host, pattern) for pattern in value.split())
        elif name and not name.startswith("#") and applies:
            settings.setdefault(name.lower(), value.strip())
    return settings
