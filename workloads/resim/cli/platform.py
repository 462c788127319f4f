"""Reads a stack's platform from its outputs: namespace, cluster, containers with credentials, and pools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from config.data.output_names import WORKLOAD_DETAILS
from config.problems.fixes import set_command
from config.schema.storage import account_path, next_rotation
from workloads.resim.batch import Refused
from workloads.resim.options import NAME


@dataclass(frozen=True)
class Container:
    """A blob container of the platform, and its SAS, if any."""

    name: str
    url: str
    sas: str = ""
    expiry: datetime | None = None
    rotation: str = ""
    account_key: str = ""

    def check_lasts(self, hours: int, now: datetime, stack: str) -> None:
        """Raises Refused unless a batch of this number of hours ends before the SAS expires."""
        if self.expiry is None or now + timedelta(hours=hours) < self.expiry:
            return
        most = int((self.expiry - now) / timedelta(hours=1))
        rotate = set_command((*account_path(self.account_key), "rotation"), next_rotation(self.rotation))
        fresh = f"{rotate.in_stack(stack, ['storage'])} && pulumi up"
        ends = self.expiry.isoformat(timespec="minutes")
        what = f"the SAS of container {self.name} expires at {ends}, before a batch of {hours} hours ends"
        allowed = "a shorter batch; or a SAS with more `days` and a new rotation; or an account with auth: identity"
        raise Refused(what, allowed, f"--hours {most}, or {fresh}" if most >= 1 else fresh)


@dataclass(frozen=True)
class Pool:
    """The data of a GPU pool from which costs are calculated."""

    size: str
    spot: bool


@dataclass(frozen=True)
class Platform:
    stack: str
    namespace: str
    kubeconfig: str
    containers: Mapping[str, Container]
    pools: Mapping[str, Pool]
    """Pools by ARM name. Names of nodes contain these names."""

    def container(self, name: str) -> Container:
        """Returns a container from the outputs. Raises Refused if the outputs do not have it."""
        if name not in self.containers:
            what = f"the outputs of stack {self.stack} have no container {name}"
            raise Refused(what, ", ".join(self.containers) or "a stack with containers", "pulumi up")
        return self.containers[name]


def platform(stack: str, own: Mapping[str, Any], shared: Mapping[str, Any]) -> Platform:
    """Returns the platform from a stack's `own` outputs and the outputs of the platform's stack (`shared`).

    Raises Refused if the stack has no resim or is not deployed.
    """
    details = own.get(WORKLOAD_DETAILS, {}).get(NAME)
    if details is None:
        has = ", ".join(own.get("workloads", {})) or "none"
        what = f"{f'stack {stack}' if stack else 'the selected stack'} has no workload {NAME}; its workloads: {has}"
        raise Refused(what, f"a deployed stack with {NAME}", f"--stack <name>, or pulumi config set workloads {NAME}")
    output, sas = shared.get("platform", {}), shared.get("sas", {})
    containers = {
        name: _container(name, plain, sas.get(name, {})) for name, plain in output.get("containers", {}).items()
    }
    settings, names = output.get("settings", {}), shared.get("pools", {})
    of_default = {"vmSku": settings.get("vmSku", "")}
    pools = {arm: _pool(settings.get("pools", {}).get(key, of_default)) for key, arm in names.items()}
    return Platform(stack, details["namespace"], own["kubeconfig"], containers, pools)


def _container(name: str, plain: Mapping[str, Any], secrets: Mapping[str, str]) -> Container:
    expiry = plain.get("expiry")
    return Container(
        name=name,
        url=plain["url"],
        sas=secrets.get("sas", ""),
        expiry=datetime.fromisoformat(expiry.replace("Z", "+00:00")).astimezone(UTC) if expiry else None,
        rotation=plain.get("rotation", ""),
        account_key=plain.get("accountKey", ""),
    )


def _pool(settings: Mapping[str, Any]) -> Pool:
    return Pool(settings["vmSku"], str(settings.get("spot", False)).lower() == "true")
