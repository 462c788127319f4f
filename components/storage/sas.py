"""Shared access signatures (SAS), which open one blob container for a period that is stored in the state.

A SAS stays the same until its rotation, days or permissions change. The program reads the clock only to report SAS that
end soon or have ended.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_azure_native import storage

from components._base import Component
from components.storage.container_access import ContainerAccess, Sas
from components.storage.sas_providers import DelegationProvider, WindowProvider, instant
from config.problems.fixes import set_command
from config.schema.storage import UPLOAD_PERMISSIONS, ContainerSettings, account_path, next_rotation

LONGEST_WARNING = timedelta(days=14)
ALERT = "SASEnds"
_ARM_SIGNS = frozenset("racwdl")
"""The permissions of a container that ARM can sign.

`listServiceSas` signs for version 2015-04-05 and knows r, d, w, l, a, c, u and p, where p means "process" (Azure REST
API, ServiceSasParameters.signedPermission). The permissions m (move) and p (permissions) came with version 2020-02-10.
"""
_VERSION = "2020-12-06"
"""The version in SAS, fixed so that equal arguments give an equal SAS in all versions of the SDK."""
_CONTAINER = "c"


class SasWindow(pulumi.dynamic.Resource, module="ai-on-aks", name="SasWindow"):
    """The validity period of SAS."""

    start: pulumi.Output[str]
    expiry: pulumi.Output[str]

    def __init__(self, name: str, *, rotation: str, days: int, opts: pulumi.ResourceOptions) -> None:
        super().__init__(
            WindowProvider(), name, {"rotation": rotation, "days": days, "start": None, "expiry": None}, opts
        )


class DelegationSas(pulumi.dynamic.Resource, module="ai-on-aks", name="DelegationSas"):
    """A user-delegation SAS, which Azure Resource Manager cannot issue."""

    sas: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        account: storage.StorageAccount,
        container: str,
        permissions: str,
        window: SasWindow,
        opts: pulumi.ResourceOptions,
    ) -> None:
        inputs = {
            "endpoint": account.primary_endpoints.blob,
            "account": account.name,
            "container": container,
            "permissions": permissions,
            "start": window.start,
            "expiry": window.expiry,
            "sas": None,
        }
        secret = pulumi.ResourceOptions(additional_secret_outputs=["sas"])
        super().__init__(DelegationProvider(), name, inputs, pulumi.ResourceOptions.merge(opts, secret))


class ContainerSas(Component):
    """The SAS of one container without a leading `?`: for mounts and, if the settings enable it, for uploads."""

    mount: pulumi.Output[str]
    upload: pulumi.Output[str] | None
    window: SasWindow

    def __init__(
        self,
        name: str,
        container: storage.BlobContainer,
        settings: ContainerSettings,
        *,
        account: storage.StorageAccount,
        resource_group: pulumi.Input[str],
        rotation: str,
        needs: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Issues the SAS of container `name`. `needs` must exist before the deployer can sign user-delegation SAS."""
        super().__init__(f"sas-{name}", opts)
        self._container_name, self._container = name, container
        self._account, self._resource_group, self._needs = account, resource_group, needs
        self.window = SasWindow(f"sas-window-{name}", rotation=rotation, days=settings.days, opts=self.child())
        issue = self._service_sas if settings.sas == "service" else self._delegation_sas
        self.mount = pulumi.Output.secret(issue("mount", settings.permissions))
        self.upload = pulumi.Output.secret(issue("upload", UPLOAD_PERMISSIONS)) if settings.upload else None
        self.register_outputs({"expiry": self.window.expiry})

    def _service_sas(self, _use: str, permissions: str) -> pulumi.Output[str]:
        if set(permissions) <= _ARM_SIGNS:
            return self._arm_sas(permissions)
        found = storage.list_storage_account_keys_output(
            account_name=self._account.name,
            resource_group_name=self._resource_group,
            opts=pulumi.InvokeOutputOptions(parent=self),
        )
        first = pulumi.Output.secret(found.keys.apply(lambda keys: str(keys[0].value)))
        return pulumi.Output.all(
            key=first,
            account=self._account.name,
            container=self._container.name,
            start=self.window.start,
            expiry=self.window.expiry,
        ).apply(lambda given: sign(permissions=permissions, **given))

    def _arm_sas(self, permissions: str) -> pulumi.Output[str]:
        signed = storage.list_storage_account_service_sas_output(
            account_name=self._account.name,
            resource_group_name=self._resource_group,
            canonicalized_resource=pulumi.Output.format("/blob/{0}/{1}", self._account.name, self._container.name),
            resource=storage.SignedResource.C,
            permissions=permissions,
            protocols=storage.HttpProtocol.HTTPS,
            shared_access_start_time=self.window.start,
            shared_access_expiry_time=self.window.expiry,
            key_to_sign="key1",
            opts=pulumi.InvokeOutputOptions(parent=self),
        )
        token: pulumi.Output[str] = signed.service_sas_token
        return token.apply(lambda text: text.removeprefix("?"))

    def _delegation_sas(self, use: str, permissions: str) -> pulumi.Output[str]:
        return DelegationSas(
            f"sas-{use}-{self._container_name}",
            account=self._account,
            container=self._container_name,
            permissions=permissions,
            window=self.window,
            opts=self.child(depends_on=[self._container, *self._needs]),
        ).sas


def check_expiry(access: ContainerAccess, *, users: Sequence[str] = (), stack: str | None = None) -> None:
    """Warns, in previews too, if a container's SAS ends soon. `stack` issues the SAS; the default is this stack.

    Raises pulumi.RunError if the SAS has ended and workloads (`users`) use it: their pods would wait for the mount
    forever.
    """
    if access.sas is None:
        return
    rotation = access.sas.rotation

    def check(times: list[str]) -> None:
        start, expiry = times
        now = datetime.now(UTC)
        where = stack or pulumi.get_stack()
        warning = expiry_warning(
            access.container, start, expiry, rotation, now=now, stack=where, account_key=access.account_key
        )
        if warning and users and instant(expiry) <= now:
            raise pulumi.RunError(f"{warning}\n{', '.join(users)} would wait for the container forever.")
        if warning:
            pulumi.log.warn(warning)  # names no resource: the engine may end before it knows the URN

    pulumi.Output.all(access.sas.start, access.sas.expiry).apply(check)


def expiry_warning(
    container: str, start: str, expiry: str, rotation: str, *, now: datetime, stack: str, account_key: str = ""
) -> str | None:
    """Returns the warning for a SAS that has ended or ends soon, or None."""
    ends = instant(expiry)
    if ends - now > warned_for(start, expiry):
        return None
    verb = "ended" if ends <= now else "ends"
    effect = (
        "mounts and uploads that use it fail" if ends <= now else "mounts and uploads that use it fail from then on"
    )
    fix = renewal(account_key, rotation, stack)
    return f"the SAS of container {container} {verb} at {expiry}, and {effect}. Issue new SAS: {fix}"


def warned_for(start: str, expiry: str) -> timedelta:
    """Returns how long before the end of a SAS warnings begin: a third of its validity, at most 14 days."""
    return min((instant(expiry) - instant(start)) / 3, LONGEST_WARNING)


def renewal(account_key: str, rotation: str, stack: str) -> str:
    path = (*account_path(account_key), "rotation")
    return str(set_command(path, next_rotation(rotation)).in_stack(stack, ["storage"]))


def sign(key: str, *, account: str, container: str, permissions: str, start: str, expiry: str) -> str:
    """Returns a SAS for HTTPS only, without a leading `?`. `key` is the account key in base64.

    The signed text has sixteen lines. Nine of them are empty: identifier and addresses before the protocol, and
    snapshot, encryption scope and five response headers at the end (Azure, "Create a service SAS", version 2020-12-06
    and later).
    """
    fields = {"sv": _VERSION, "sr": _CONTAINER, "st": start, "se": expiry, "sp": permissions, "spr": "https"}
    before = [permissions, start, expiry, f"/blob/{account}/{container}", "", ""]
    text = "\n".join([*before, fields["spr"], _VERSION, _CONTAINER, "", "", *[""] * 5])
    signature = hmac.digest(base64.b64decode(key), text.encode(), hashlib.sha256)
    return urlencode({**fields, "sig": base64.b64encode(signature).decode()})


class SasAlert(Component):
    """A PrometheusRule that fires before SAS end. The `pulumi up` that renews SAS also updates the rule."""

    def __init__(
        self,
        name: str,
        signed: Iterable[tuple[ContainerAccess, Sas]],
        namespace: pulumi.Input[str],
        monitoring: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        kubernetes.apiextensions.CustomResource(
            name,
            api_version="monitoring.coreos.com/v1",
            kind="PrometheusRule",
            metadata={"name": name, "namespace": namespace},
            spec=pulumi.Output.all(*map(_rule_of, signed)).apply(spec),
            opts=self.child(depends_on=monitoring),
        )
        self.register_outputs({})


def _rule_of(signed: tuple[ContainerAccess, Sas]) -> pulumi.Output[dict[str, Any]]:
    access, sas = signed
    fix = renewal(access.account_key, sas.rotation, pulumi.get_stack())
    times = pulumi.Output.all(sas.start, sas.expiry)
    return times.apply(lambda window: rule(access.container, *window, fix=fix))


def spec(rules: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"groups": [{"name": "storage", "rules": list(rules)}]}


def rule(container: str, start: str, expiry: str, *, fix: str) -> dict[str, Any]:
    """Returns an alert that fires while previews warn, until the SAS is renewed. Its value is the seconds left."""
    left = warned_for(start, expiry)
    return {
        "alert": ALERT,
        "expr": f"vector({instant(expiry).timestamp():.0f}) - time() < {left.total_seconds():.0f}",
        "labels": {"severity": "critical", "container": container},
        "annotations": {
            "summary": f"The SAS of container {container} ends at {expiry}, and mounts and uploads fail from then on",
            "description": f"Issue new SAS: {fix}",
        },
    }
