"""What Azure Resource Manager cannot do for shared access signatures (SAS): remember their time, sign with Entra keys.

Two providers for dynamic resources. Pulumi pickles them and runs them in a process of their own (`pulumi.dynamic`), by
reference to this module: it imports nothing heavy, and the providers hold no state. They may do what the program may
not, read the clock and call the storage account.
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
"""How much earlier than now a SAS begins, for clocks that are behind (Microsoft's advice for SAS)."""
PAUSE_SECONDS = 15
ATTEMPTS = 41
"""Ten minutes, in which Azure promises that a new role assignment acts on blobs (Microsoft, RBAC troubleshooting)."""
_OTHER_LOGINS = ("ARM_CLIENT_ID", "ARM_USE_MSI", "ARM_USE_OIDC")
"""Environment variables with which the azure-native provider does not use Azure's CLI to log in.

https://www.pulumi.com/registry/packages/azure-native/installation-configuration/
"""
_TIME = "%Y-%m-%dT%H:%M:%SZ"


def instant(text: str) -> datetime:
    """The time that a SAS states."""
    return datetime.strptime(text, _TIME).replace(tzinfo=UTC)


class WindowProvider(dynamic.ResourceProvider):
    """From when until when the SAS of a container are valid: read off the clock once, and kept in the state.

    Inputs `rotation` (any text) and `days`; outputs `start` and `expiry`, as a SAS has them. Only another input makes
    another window.
    """

    serialize_as_secret_always = False

    def create(self, props: Properties) -> dynamic.CreateResult:
        """A window that begins now."""
        start = datetime.now(UTC) - CLOCK_SKEW
        expiry = start + timedelta(days=props["days"])
        times = {"start": start.strftime(_TIME), "expiry": expiry.strftime(_TIME)}
        return dynamic.CreateResult(str(uuid.uuid4()), {**props, **times})

    def diff(self, _id: str, olds: Properties, news: Properties) -> dynamic.DiffResult:
        """Replaced by another window when an input changes."""
        return _replaced(olds, news, ("rotation", "days"))


class DelegationProvider(dynamic.ResourceProvider):
    """A user-delegation SAS of a container: signed with a key that the storage account gives to an Entra login.

    Inputs `endpoint` (of the account's blobs), `account`, `container`, `permissions`, `start`, `expiry`; output `sas`.
    A SAS cannot be taken back one by one, so deleting it does nothing: it ends with its window.
    """

    serialize_as_secret_always = False

    def create(self, props: Properties) -> dynamic.CreateResult:
        """Signs. Raises ValueError for a window that is over, PermissionError while no role lets the login sign."""
        if instant(props["expiry"]) <= datetime.now(UTC):
            raise ValueError(
                f"the time of the SAS for container {props['container']} ended at {props['expiry']}. Another rotation "
                f"of storage account {props['account']} begins another: pulumi preview prints the command"
            )
        sas = _sign(props, _delegation_key(props))
        return dynamic.CreateResult(str(uuid.uuid4()), {**props, "sas": sas})

    def diff(self, _id: str, olds: Properties, news: Properties) -> dynamic.DiffResult:
        """Signed anew when anything that is signed changes. Where the account listens is not."""
        return _replaced(olds, news, ("account", "container", "permissions", "start", "expiry"))


def _replaced(olds: Mapping[str, Any], news: Mapping[str, Any], names: Iterable[str]) -> dynamic.DiffResult:
    changed = [name for name in names if olds.get(name) != news.get(name)]
    return dynamic.DiffResult(changes=bool(changed), replaces=changed)


def _delegation_key(props: Properties) -> Any:
    """The account's key for the login, for the time of the SAS. A role that was just assigned is waited for."""
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
        "The login needs the role Storage Blob Data Contributor there, which this program assigns to the identity that "
        f"deploys (cluster.deployerObjectId, where set). The account said: {refusal}"
    )


def _credential() -> Any:
    """Returns the login that the azure-native provider deploys with.

    On a VM, DefaultAzureCredential alone prefers the machine's managed identity to the user of `az login`.
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
