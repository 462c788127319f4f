"""Calls the Kubernetes API with the pod's service account."""

from __future__ import annotations

import json
import os
import ssl
import urllib.request
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TIMEOUT_S = 30
CONFLICT, GONE = 409, 404

Object = dict[str, Any]


def call(method: str, path: str, body: Object | None = None) -> Object:
    """Sends a request (PATCH: a merge patch). Returns the answer. Raises HTTPError if it is rejected, or OSError."""
    api = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
    request = urllib.request.Request(  # noqa: S310 - the URL is the cluster's own, always https
        f"{api}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}",
            "Accept": "application/json",
            "Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json",
        },
    )
    trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=trust) as answer:  # noqa: S310
        found: Object = json.load(answer)
        return found
