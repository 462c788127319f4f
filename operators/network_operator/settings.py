"""Settings of the NVIDIA Network Operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import StringConstraints

from config.problems.errors import Problem
from config.problems.fixes import Path, set_command
from config.schema.base import AS_TEXT, EMPTY_IS_UNSET, Text, may_be
from config.schema.operators import ChartSettings, Installation

OfedVersion = Annotated[
    str,
    StringConstraints(pattern=r"^(doca\d+(\.\d+)*-)?\d{2}\.\d{2}-\d+(\.\d+){3,4}(-\d+)?$"),
    AS_TEXT,
    may_be("a version of DOCA OFED's image, as in doca3.4.1-26.04-1.1.0.0-1 or 25.01-0.6.0.0-0"),
]
"""The format of all releases from 23.4 to 26.7 (`hack/release.yaml` of Mellanox/network-operator)."""

EnvName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"),
    may_be("names of environment variables: letters, digits and '_', not beginning with a digit"),
]


def autoscaler_problems(installation: Installation, resource: str) -> Iterator[Problem]:
    """Yields a problem if the resource's name contains `_` and the autoscaler reads it from a scale set's tag.

    In tags, the autoscaler replaces each `_` by `/` (cluster-autoscaler 1.35, azure_template.go,
    extractAllocatableResourcesFromScaleSet).
    """
    pools = installation.stack.gpu_pools().items()
    scaled = [key for key, pool in pools if pool.sku.infiniband and pool.autoscale and not pool.autoscale.min]
    if scaled and "_" in resource:
        path: Path = ("operators", "networkOperator", "rdmaResource")
        reads = "the autoscaler replaces '_' in this name by '/'"
        what = f"is {resource}, but {reads}, and cannot start the first node of pools.{scaled[0]}"
        allowed = "a name without _, or autoscale.min 1"
        yield Problem(path, what, allowed, set_command(path, resource.replace("_", "-")))


class NetworkOperatorSettings(ChartSettings):
    """OFED drivers and the RDMA device plugin."""

    rdma_resource: Annotated[
        str,
        StringConstraints(pattern=r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$"),
        may_be("at most 63 lower-case letters, digits, '-', '_' and '.', a letter or digit at both ends"),
    ] = "mlnxnics"
    """Name of the HCAs' resource, after `nvidia.com/`."""
    ofed_version: Annotated[OfedVersion | None, EMPTY_IS_UNSET] = None
    """The tag of the OFED driver's image without operating system and architecture, such as
    `doca3.4.1-26.04-1.1.0.0-1`. By default, it is the one in `config/data/versions.yaml`.
    """

    ofed_env: dict[EnvName, Text] = {}
    """Environment variables of the OFED driver's container, such as `OFED_BLACKLIST_MODULES_FILE:
    /host/etc/modprobe.d/blacklist-ofed-modules.conf` ([reloads that fail](drivers.md#ofed-cannot-be-reloaded)).
    """

    @property
    def resource_name(self) -> str:
        return f"nvidia.com/{self.rdma_resource}"

    @property
    def rdma_driver_minutes(self) -> int:
        """The maximum time that compiling OFED takes, in minutes (network-operator#318)."""
        return 12
