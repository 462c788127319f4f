"""Dynamic providers that store the validity period of a SAS, and sign the SAS with a user delegation key.

Azure Resource Manager can do neither. Pulumi pickles providers by reference to this module and runs them in a separate
process (`pulumi.dynamic`), so the module imports nothing heavy, and providers have no state. Unlike the program,
providers may read the clock and call the storage account.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pulumi import dynamic

Properties = dict[str, Any]

CLOCK_SKEW = timedelta(minutes=15)
"""A SAS begins this long before now, for clocks that are behind (Microsoft's advice for SAS)."""
PAUSE_SECONDS = 15
ATTEMPTS = 41
"""Attempts within ten minutes, because a new role applies to blobs with a delay (Microsoft, RBAC troubleshooting)."""
_OTHER_LOGINS = ("ARM_CLIENT_ID", "ARM_USE_MSI", "ARM_USE_OIDC")
"""Variables that make the azure-native provider log in without Azure's CLI.

https://www.pulumi.com/registry/packages/azure-native/installation-configuration/
"""
_TIME = "%Y-%m-%dT%H:%M:%SZ"


def instant(text: str) -> datetime:
    return datetime.strptime(text, _TIME).replace(tzinfo=UTC)


class WindowProvider(dynamic.ResourceProvider):
    """The validity period (window) of a container's SAS. It begins now, and stays in the state until an input changes.

    The inputs are `rotation` (any text) and `days`; the outputs are `start` and `expiry`, in the format of SAS.
    """

    serialize_as_secret_always = False

    def create(self, props: Properties) -> dynamic.CreateResult:
        start = datetime.now(UTC) - CLOCK_SKEW
        expiry = start + timedelta(days=props["days"])
        times = {"start": start.strftime(_TIME), "expiry": expiry.strftime(_TIME)}
        return dynamic.CreateResult(str(uuid.uuid4()), {**props, **times})

    def diff(self, _id: str, olds: Properties, news: Properties) -> dynamic.DiffResult:
        return _replaced(olds, news, ("rotation", "days"))


class DelegationProvider(dynamic.ResourceProvider):
    """A user-delegation SAS of a container, signed with a key that the storage account gives to an Entra login.

    The inputs are `endpoint` (of the account's blobs), `account`, `container`, `permissions`, `start` and `expiry`; the
    output is `sas`. Its deletion does nothing, because Azure cannot revoke a single SAS: it is valid until `expiry`.
    """

    serialize_as_secret_always = False

    def create(self, props: Properties) -> dynamic.CreateResult:
        """Signs the SAS. Raises ValueError if the window is over, or PermissionError if no role lets the login sign."""
        if instant(props["expiry"]) <= datetime.now(UTC):
            raise ValueError(
                f"the validity of the SAS for container {props['container']} ended at {props['expiry']}. Change the "
                f"rotation of storage account {props['account']}: pulumi preview prints the command"
            )
        sas = _sign(props, _delegation_key(props))
        return dynamic.CreateResult(str(uuid.uuid4()), {**props, "sas": sas})

    def diff(self, _id: str, olds: Properties, news: Properties) -> dynamic.DiffResult:
        """Replaces the SAS if a signed input changes. The endpoint is not signed."""
        return _replaced(olds, news, ("account", "container", "permissions", "start", "expiry"))


def _replaced(olds: Mapping[str, Any], news: Mapping[str, Any], names: Iterable[str]) -> dynamic.DiffResult:
    changed = [name for name in names if olds.get(name) != news.get(name)]
    return dynamic.DiffResult(changes=bool(changed), replaces=changed)


def _delegation_key(props: Properties) -> Any:
    from azure.core.exceptions import HttpResponseError
    from azure.storage.blob import BlobServiceClient

    forbidden = 403
    with BlobServiceClient(props["endpoint"], credential=_credential()) as service:
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(PAUSE_SECONDS)
            try:
                return service.get_user_delegation_key(instant(props["start"]), instant(props["expiry"]))
            except HttpResponseError as error:
                if error.status_code != forbidden:
                    raise
                refusal = error
    raise PermissionError(
        f"storage account {props['account']} gave no user delegation key in {ATTEMPTS * PAUSE_SECONDS // 60} minutes. "
        "The login needs the role Storage Blob Data Contributor there. This program assigns it to the deployer "
        f"(cluster.deployerObjectId, if set). The account's error: {refusal}"
    )


def _credential() -> Any:
    """Returns the login that the azure-native provider deploys with.

    On a VM, DefaultAzureCredential alone would prefer the machine's managed identity to the user of `az login`.
    """
    from azure.identity import AzureCliCredential, ChainedTokenCredential, DefaultAzureCredential

    if any(os.environ.get(name) for name in _OTHER_LOGINS):
        return DefaultAzureCredential()
    return ChainedTokenCredential(AzureCliCredential(), DefaultAzureCredential())


def _sign(props: Properties, key: Any) -> str:
    from azure.storage.blob import generate_container_sas

    return generate_container_sas(
        props["account"],
        props["container"],
        user_delegation_key=key,
        permission=props["permissions"],
        start=props["start"],
        expiry=props["expiry"],
        protocol="https",
    )
