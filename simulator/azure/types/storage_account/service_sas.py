"""Service SAS tokens (`listServiceSas`), signed with the account's key.

Sources: Azure's page "Create a service SAS" (Resource Manager's version 2015-04-05 of the string-to-sign) and the REST
reference of `listServiceSas`.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from simulator.azure.errors import ArmError, bad_request
from simulator.azure.store import Body, Record
from simulator.azure.types.storage_account import keys

_VERSION = "2015-04-05"
_PERMISSIONS = {"c": "racwdl", "b": "racwd"}  # of a container and of a blob, in the order for the signature
_PROTOCOLS = ("https", "https,http")
_KNOWN = (
    "canonicalizedResource",
    "signedResource",
    "signedPermission",
    "signedProtocol",
    "signedStart",
    "signedExpiry",
    "keyToSign",
)
_NO_KEYS = "Key based authentication is not permitted on this storage account."


def issue(account: Record, body: Body) -> Body:
    """Returns the token, without a question mark. Raises ArmError if ARM or the blob service would reject it."""
    keys.require_ready(account)
    if not keys.allowed(account):
        raise ArmError(HTTPStatus.FORBIDDEN, "KeyBasedAuthenticationNotPermitted", _NO_KEYS)
    parameters = {name: value for name, value in body.items() if value not in (None, "")}
    if unknown := sorted(parameters.keys() - set(_KNOWN)):
        raise _invalid(unknown[0], f"is not simulated: use {', '.join(_KNOWN)}")
    kind = _choice(parameters, "signedResource", tuple(_PERMISSIONS))
    fields = {
        "sv": _VERSION,
        "sr": kind,
        "st": _time(parameters, "signedStart") if "signedStart" in parameters else "",
        "se": _time(parameters, "signedExpiry"),
        "sp": _permissions(parameters, _PERMISSIONS[kind]),
        "spr": _choice(parameters, "signedProtocol", _PROTOCOLS) if "signedProtocol" in parameters else "",
    }
    key = dict(zip(keys.NAMES, account.facts["keys"], strict=True))
    chosen = _choice(parameters, "keyToSign", keys.NAMES) if "keyToSign" in parameters else keys.NAMES[0]
    fields["sig"] = _sign(key[chosen], fields, _resource(parameters, account.id.name))
    return {"serviceSasToken": urlencode({name: value for name, value in fields.items() if value})}


def _sign(key: str, fields: Mapping[str, str], resource: str) -> str:
    identifier = address = ""  # stored access policies and IP restrictions are not simulated
    response_headers = [""] * 5
    lines = [fields["sp"], fields["st"], fields["se"], resource, identifier, address, fields["spr"], fields["sv"]]
    text = "\n".join([*lines, *response_headers])
    return base64.b64encode(hmac.digest(base64.b64decode(key), text.encode(), hashlib.sha256)).decode()


def _resource(parameters: Mapping[str, Any], account: str) -> str:
    resource = str(parameters.get("canonicalizedResource", ""))
    if not re.fullmatch(rf"/blob/{account}/[^/]+(/.+)?", resource):
        raise _invalid("canonicalizedResource", f"must be /blob/{account}/<container>, or that and a blob's name")
    return resource


def _permissions(parameters: Mapping[str, Any], known: str) -> str:
    given = str(parameters.get("signedPermission", ""))
    if not given or set(given) - set(known) or len(set(given)) < len(given):
        raise _invalid("signedPermission", f"must be some of the letters {known}, each once")
    return "".join(letter for letter in known if letter in given)


def _time(parameters: Mapping[str, Any], name: str) -> str:
    try:
        moment = datetime.datetime.fromisoformat(str(parameters.get(name, "")))
    except ValueError:
        raise _invalid(name, "must be a time as 2026-11-21T00:00:00Z") from None
    utc = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    return utc.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _choice(parameters: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> str:
    value = str(parameters.get(name, ""))
    if value not in allowed:
        raise _invalid(name, f"must be one of {' '.join(allowed)}")
    return value


def _invalid(name: str, why: str) -> ArmError:
    message = f"Values for request parameters are invalid: {name}. It {why}."
    return bad_request(message, code="InvalidValuesForRequestParameters", target=name)
