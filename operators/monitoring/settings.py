"""Settings of monitoring."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from config.facts.storage_classes import aks_classes
from config.schema.base import may_be, unfit
from config.schema.operators import ChartSettings
from config.schema.storage import SHARED_CLASS, ClassName

DISKS = "managed-csi"
"""AKS's class of Standard SSDs (aks-docs, concepts-storage.md)."""


def _is_of_disks(name: str) -> str:
    """Prometheus keeps its data on no share: its documentation (storage.md) rules out NFS, and what is not POSIX."""
    if name in (SHARED_CLASS, *aks_classes().files, *aks_classes().blobs):
        raise unfit(f"is {name}, a class of shares, on which Prometheus's data do not keep", DISKS)
    return name


class MonitoringSettings(ChartSettings):
    """It is off unless it is asked for: it costs three disks, and room on the system pool."""

    enabled: bool = False
    """Whether the stack has it."""
    storage_class: Annotated[
        ClassName,
        may_be(f"a storage class of disks, as in {DISKS}"),
        AfterValidator(_is_of_disks),
    ] = DISKS
    """Storage class of the disks of Prometheus, Alertmanager and Grafana, which stay when monitoring goes. Once they
    are there, another class is refused by the cluster.
    """
