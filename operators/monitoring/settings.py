"""Settings of monitoring."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from config.schema.base import may_be, unfit
from config.schema.operators import ChartSettings

DISKS = "managed-csi"
"""AKS's class of Standard SSDs (aks-docs, concepts-storage.md)."""
_SHARES = ("azurefile", "azureblob")
"""How names of AKS's classes of file shares and blobs begin."""


def _is_of_disks(name: str) -> str:
    """Prometheus keeps its data on no share: its documentation (storage.md) rules out NFS, and what is not POSIX."""
    if name.startswith(_SHARES):
        raise unfit(f"is {name}, a class of shares, on which Prometheus's data do not keep", DISKS)
    return name


class MonitoringSettings(ChartSettings):
    """It is off unless it is asked for: it costs three disks, and room on the system pool."""

    enabled: bool = False
    """Whether the stack has it."""
    storage_class: Annotated[
        str,
        StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$", max_length=253),
        may_be(f"a storage class of disks, as in {DISKS}"),
        AfterValidator(_is_of_disks),
    ] = DISKS
    """Storage class of the disks of Prometheus, Alertmanager and Grafana, which stay when monitoring goes. Once they
    are there, another class is refused by the cluster.
    """
