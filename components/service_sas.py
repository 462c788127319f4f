"""Service shared access signatures (SAS) with permissions that Azure Resource Manager does not sign.

Its `listServiceSas` signs for version 2015-04-05 and knows r, d, w, l, a, c, u and p, the last one for "process" (Azure
REST API, ServiceSasParameters.signedPermission). Move and permissions came with version 2020-02-10.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from urllib.parse import urlencode

ARM_SIGNS = frozenset("racwdl")
"""What ARM can sign for a container."""
_VERSION = "2020-12-06"
"""Fixed, so that equal arguments make an equal SAS whatever the SDK's version."""
_CONTAINER = "c"


def sign(key: str, *, account: str, container: str, permissions: str, start: str, expiry: str) -> str:
    """The SAS, by HTTPS alone and without a leading `?`; `key` is the account's, in base64.

    The text that is signed is of sixteen lines, most of them empty here (Azure, "Create a service SAS", version
    2020-12-06 and later): identifier and addresses before the protocol, snapshot and encryption scope, five response
    headers.
    """
    fields = {"sv": _VERSION, "sr": _CONTAINER, "st": start, "se": expiry, "sp": permissions, "spr": "https"}
    before = [permissions, start, expiry, f"/blob/{account}/{container}", "", ""]
    text = "\n".join([*before, fields["spr"], _VERSION, _CONTAINER, "", "", *[""] * 5])
    signature = hmac.digest(base64.b64decode(key), text.encode(), hashlib.sha256)
    return urlencode({**fields, "sig": base64.b64encode(signature).decode()})
