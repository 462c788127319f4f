#!/usr/bin/env python3
"""Labels its node with data about the Azure host and InfiniBand, and removes stale labels.

Azure's support asks for these data. Hyper-V describes the VM and its host in a file of fixed-size records. In sysfs are
the InfiniBand partition (pkey) and the GUIDs of HCAs. The pod's service account needs `get` and `patch` of nodes.
"""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

KEY_BYTES, VALUE_BYTES = 512, 2048
"""Bytes of key and value in a record of Hyper-V's file: UTF-8, padded with zeros (HV_KVP_EXCHANGE_MAX_*_SIZE of
linux/hyperv.h).
"""
MAX_LABEL = 63
"""The maximum length of a label's value, and of a label's name after the prefix, in Kubernetes."""
HYPERV = "hyperv/"
INFINIBAND = "ai-on-aks/ib-"
PREFIXES = (HYPERV, INFINIBAND)
"""The prefixes of this program's labels. It removes stale labels with these prefixes."""
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TIMEOUT_S = 30
_SIGNS = "-_."

Labels = dict[str, str]


def records(pool: bytes) -> dict[str, str]:
    """Returns keys and values of a pool file, without an incomplete last record."""
    size = KEY_BYTES + VALUE_BYTES
    found = {}
    for start in range(0, len(pool) - size + 1, size):
        key, value = pool[start : start + KEY_BYTES], pool[start + KEY_BYTES : start + size]
        found[_text(key)] = _text(value)
    return found


def label_text(text: str) -> str:
    """Converts a text to a valid name or value of a label. The result may be empty."""
    allowed = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(_SIGNS)
    return allowed[:MAX_LABEL].strip(_SIGNS)


def hyperv_labels(pool: bytes) -> Labels:
    """Returns `hyperv/<key>=<value>` for each record that has a key and a value."""
    pairs = {label_text(key): label_text(value) for key, value in records(pool).items()}
    return {HYPERV + name: value for name, value in pairs.items() if name and value}


def infiniband_labels(folder: Path) -> Labels:
    """Returns `ai-on-aks/ib-pkey`, and `ai-on-aks/ib-guid-<device>` for each device in a folder /sys/class/infiniband.

    Nodes only connect if they have the same pkey. If this node's HCAs have several pkeys, `_` joins them. Ethernet
    devices (accelerated networking) are skipped. A GUID has 16 hexadecimal digits, without colons.
    """
    labels: Labels = {}
    pkeys = set()
    for device in sorted(folder.iterdir()) if folder.is_dir() else []:
        port = device / "ports" / "1"
        if _read(port / "link_layer") == "InfiniBand":
            pkeys.add(_read(port / "pkeys" / "0"))
            labels[f"{INFINIBAND}guid-{label_text(device.name)}"] = _read(device / "node_guid").replace(":", "")
    if pkeys:
        labels[f"{INFINIBAND}pkey"] = label_text("_".join(sorted(pkeys)))
    return labels


def changes(present: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str | None]:
    """Returns a patch. After it, this program's labels are exactly the wanted labels. None removes a label."""
    stale = {name: None for name in present if name.startswith(PREFIXES) and name not in wanted}
    return {**stale, **{name: value for name, value in wanted.items() if present.get(name) != value}}


class Node:
    """A Node in the API."""

    def __init__(self, name: str, api: str, account: Path = ACCOUNT) -> None:
        self._url = f"{api}/api/v1/nodes/{name}"
        self._account = account

    def labels(self) -> Labels:
        """Returns the current labels. Raises OSError."""
        found: Labels = self._call("GET")["metadata"].get("labels", {})
        return found

    def patch(self, labels: Mapping[str, str | None]) -> None:
        """Sets labels. Removes labels with the value None. Raises OSError."""
        self._call("PATCH", {"metadata": {"labels": labels}})

    def _call(self, method: str, body: object = None) -> dict[str, dict[str, Labels]]:
        """Calls the API. Reads the token for each call, because the kubelet renews it."""
        request = urllib.request.Request(  # noqa: S310 - the URL is the cluster's own, always https
            self._url,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {_read(self._account / 'token')}",
                "Accept": "application/json",
                "Content-Type": "application/merge-patch+json",
            },
        )
        trust = ssl.create_default_context(cafile=str(self._account / "ca.crt"))
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=trust) as answer:  # noqa: S310
                node: dict[str, dict[str, Labels]] = json.load(answer)
                return node
        except urllib.error.HTTPError as error:
            message = f"{method} {self._url}: {error.code} {error.read().decode(errors='replace')}"
            raise OSError(message) from error


def update(node: Node, pool: Path, infiniband: Path) -> None:
    """Updates the node's labels. Without the file `pool`, which Hyper-V's daemon writes, the node has no `hyperv/`."""
    hyperv = hyperv_labels(pool.read_bytes()) if pool.exists() else {}
    needed = changes(node.labels(), {**hyperv, **infiniband_labels(infiniband)})
    if needed:
        node.patch(needed)
    for name, value in sorted(needed.items()):
        print(f"removed {name}" if value is None else f"set {name}={value}", flush=True)


def main() -> int:
    """Updates labels repeatedly. A VM may move to another host, and a new fabric manager may assign another pkey."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    environment = os.environ
    api = f"https://{environment['KUBERNETES_SERVICE_HOST']}:{environment['KUBERNETES_SERVICE_PORT']}"
    node = Node(environment["NODE_NAME"], api)
    while True:
        try:
            update(node, Path(environment["KVP_POOL"]), Path(environment["INFINIBAND_CLASS"]))
        except OSError as error:
            print(f"ERROR: {error}; retrying in {environment['INTERVAL_SECONDS']} s", file=sys.stderr, flush=True)
        time.sleep(float(environment["INTERVAL_SECONDS"]))


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", errors="replace").strip()


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip()


if __name__ == "__main__":
    sys.exit(main())
