"""GPU node pools: settings, names in ARM, labels and taints."""

from __future__ import annotations

import hashlib
import re
from decimal import ROUND_DOWN, Decimal
from math import inf
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from config.data.allocatable import MAX_PODS, MIN_PODS
from config.data.gpu_sharing import MIG_LABEL, SLICING_LABEL, mig_profiles, slicing_profile
from config.data.near import hint, near
from config.data.prices import by_price
from config.data.scheduling import GPU_LABEL, GPU_TAINT, POOL_LABEL, SCRATCH_LABEL, SPOT_LABEL, SPOT_TAINT
from config.data.skus import VmSku, catalogue, written_differently
from config.schema.base import PLAIN_DIGITS, Model, Text, number_in, protects, unfit
from config.schema.os_disk import MAX_OS_DISK_GB, MIN_OS_DISK_GB, USUAL_GB, DiskType, OsDisk, os_disk
from config.schema.resource_ids import CapacityReservationGroupId

MAX_NODES = 1000
"""The maximum number of nodes in one pool in AKS."""
MAX_POOL_NAME = 12
"""The longest name of a Linux pool in AKS: lower-case letters and digits, beginning with a letter."""
SUFFIX_LENGTH = 4
MAX_POOL_KEY = MAX_POOL_NAME - SUFFIX_LENGTH


def gpu_sizes() -> list[str]:
    return [size.name for size in catalogue().values() if size.gpus and size.supported]


def _only_gpus() -> str:
    return f"a size with GPUs (other nodes belong in cluster.systemPool): {by_price(gpu_sizes())}"


def _usable(name: str) -> str:
    """Rejects VM sizes that GPU pools cannot have, also names in another case: unlike ARM, labels and quotas
    distinguish case.
    """
    usable, size = gpu_sizes(), catalogue().get(name)
    if size is None:
        if re.match("standard_[a-mo-z]+[0-9]", name, re.IGNORECASE):
            raise unfit(f"is {name!r}, from a series without GPUs", None, allowed=_only_gpus())
        same = written_differently(name, usable)
        is_size = not same and re.fullmatch(r"standard_n[a-z]+\d+[a-z]*(_[a-z]+\d+)?_v\d+", name, re.IGNORECASE)
        unknown = "a VM size that this program does not know" if is_size else "an unknown VM size"
        raise unfit(f"is {name!r}, {unknown}{hint(near(name, usable))}", next(iter(same), None))
    if not size.gpus:
        raise unfit(f"is {name}, which has no GPU", None, allowed=_only_gpus())
    if size.refusal:
        raise unfit(f"is {name}, which is not supported yet: {size.refusal}", None)
    return name


GpuSku = Annotated[
    str,
    AfterValidator(_usable),
    Field(json_schema_extra=lambda schema: schema.update(enum=gpu_sizes(), allowed=by_price(gpu_sizes()))),
]
NodeCount = Annotated[int, Field(ge=0, le=MAX_NODES), PLAIN_DIGITS]

REGULAR_PRICE = -1.0
"""The maximum price that means the regular price: Azure then evicts no Spot node because of its price."""
_CENTS = 5  # decimals that Azure accepts
MAX_SLICES = 250
"""The maximum number of slices per GPU: AKS allows 250 pods per node (AKS's page on quotas), and each uses a slice."""


def _spot_price(value: Any) -> float:
    """Validates AKS's rule: -1, or positive with at most five decimals (AKS's page on Spot node pools, Limitations)."""
    try:
        price = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        price = float("nan")
    if price == REGULAR_PRICE or (0 < price < inf and round(price, _CENTS) == price):
        return price
    rounded = float(Decimal(str(number_in(value))).quantize(Decimal(10) ** -_CENTS, ROUND_DOWN))
    allowed = f"-1 (the price of a regular node), or US dollars per hour with {_CENTS} decimals at most, as in 0.98765"
    better = rounded or (int(REGULAR_PRICE) if price < 0 else None)
    raise unfit(f"is {value!r}, not a price that Azure accepts", better, allowed=allowed)


SpotPrice = Annotated[float, BeforeValidator(_spot_price)]


MAX_PRIORITY = 1000


class Autoscale(Model):
    """The bounds of the cluster autoscaler."""

    min: NodeCount
    """Minimum number of nodes; a new pool starts with it. For InfiniBand, set the number that jobs need
    ([why](autoscaler.md#nodes-that-build-drivers)). It is not confirmed that AKS starts the first InfiniBand node of an
    empty pool.
    """
    max: NodeCount
    """Maximum number of nodes."""
    priority: Annotated[int | None, Field(ge=0, le=MAX_PRIORITY), PLAIN_DIGITS] = None
    """Priority if `cluster.autoscaler.expander` is `priority`, by default 0. Of the suitable pools, the pool with the
    highest number grows; if Azure has no nodes for it, the next pool grows.
    """

    @property
    def rank(self) -> int:
        return self.priority or 0


class PoolSettings(Model):
    """One pool of GPU nodes, all of one VM size and in one InfiniBand fabric."""

    vm_sku: GpuSku
    """VM size of the pool's nodes; `pools` replaces `vmSku` and `nodeCount`."""
    count: NodeCount = 2
    """Number of nodes of a pool without `autoscale`."""
    spot: bool = False
    """Use Spot nodes."""
    spot_max_price: Annotated[SpotPrice, protects("limit")] = REGULAR_PRICE
    """Maximum price of a Spot node, in US dollars per hour, with up to five decimals. Azure evicts nodes that cost
    more. `-1` means up to the price of a regular node. A change replaces the pool.
    """
    autoscale: Autoscale | None = None
    """Let the cluster autoscaler set the number of nodes."""
    labels: dict[str, Text] = {}
    """Additional node labels."""
    taints: tuple[str, ...] = (GPU_TAINT,)
    """Node taints; operators and workloads tolerate them."""
    os_disk_gb: Annotated[
        int | None, Field(ge=MIN_OS_DISK_GB, le=MAX_OS_DISK_GB, examples=[USUAL_GB]), PLAIN_DIGITS
    ] = None
    """Size of the nodes' OS disk in GB; by default 512, or less if `osDiskType` is `Ephemeral` and the VM size's local
    disk is smaller. A change replaces the pool.
    """
    os_disk_type: DiskType | None = None
    """`Managed`, or `Ephemeral` on the VM size's own disks; by default `Ephemeral` if the OS disk fits there. A change
    replaces the pool.
    """
    local_nvme_scratch: bool | None = None
    """Create one scratch file system of the local NVMe disks; by default `true` if the VM size has local NVMe disks."""
    gpu_slices: Annotated[int, Field(ge=1, le=MAX_SLICES), PLAIN_DIGITS] = 1
    """Number of pods that may share each GPU (time slicing): a node advertises each GPU this many times. The pods'
    memory is not isolated.
    """
    mig_profile: str | None = None
    """Partition each GPU (MIG) with a configuration of NVIDIA's MIG manager for this model, such as `all-1g.10gb`.
    Nodes advertise the partitions as GPUs.

    config/data/mig.yaml lists them.
    """
    capacity_reservation_group: CapacityReservationGroupId | None = None
    """Take nodes from the reservations of this group. Requires `cluster.identity` and a VM size with capacity
    reservations. A change replaces the pool.
    """
    max_pods: Annotated[int | None, Field(ge=MIN_PODS, le=MAX_PODS), PLAIN_DIGITS] = None
    """Maximum number of pods per node, including about 25 pods of AKS and operators; by default 250, AKS's default for
    CNI Overlay. A change replaces the pool.
    """
    replace: Literal["create-first", "delete-first"] = "create-first"
    """Order of replacement if Azure cannot change the pool: `create-first`, or `delete-first` if the quota is too small
    for both pools.
    """

    @field_validator("autoscale", mode="before")
    @classmethod
    def _max_is_set(cls, value: Any, info: ValidationInfo) -> Any:
        known = {field.alias for field in Autoscale.model_fields.values()} - {"max"}
        least = (
            str(value.get("min")) if isinstance(value, dict) and value.keys() <= known else ""
        )  # another key may be a misspelt max
        if re.fullmatch("[0-9]{1,4}", least):
            raise unfit("is not set", max(info.data.get("count", 0), int(least)), "max")
        return value

    @property
    def count_key(self) -> tuple[str, ...]:
        return ("autoscale", "min") if self.autoscale else ("count",)

    @property
    def sku(self) -> VmSku:
        return catalogue()[self.vm_sku]

    @property
    def pods(self) -> int:
        return self.max_pods or MAX_PODS

    @property
    def disk(self) -> OsDisk:
        return os_disk(self.sku, self.os_disk_gb, self.os_disk_type)

    @property
    def shares(self) -> int:
        """The number of GPUs (slices or partitions) that a node advertises for each physical GPU."""
        return mig_profiles(self.sku.gpu_product).get(self.mig_profile, 1) if self.mig_profile else self.gpu_slices

    @property
    def gpus(self) -> int:
        return self.sku.gpus * self.shares

    @property
    def slicing_profile(self) -> str | None:
        """The time-slicing configuration of the device plugin on its nodes; None for unsliced GPUs, the default."""
        return slicing_profile(self.sku, self.gpu_slices) if self.gpu_slices > 1 else None

    @property
    def scratch(self) -> bool:
        return self.sku.nvme is not None if self.local_nvme_scratch is None else self.local_nvme_scratch

    @property
    def max_nodes(self) -> int:
        return self.autoscale.max if self.autoscale else self.count

    @property
    def min_nodes(self) -> int:
        return self.autoscale.min if self.autoscale else self.count


def agent_pool_name(key: str, pool: PoolSettings) -> str:
    """Returns the pool's ARM name: its key and a hash of immutable settings, so that old and new pool can coexist."""
    fixed: tuple[object, ...] = (pool.vm_sku, pool.spot, pool.disk.gb, pool.disk.type)
    if pool.spot_max_price != REGULAR_PRICE:
        fixed += (pool.spot_max_price,)
    if pool.capacity_reservation_group:
        fixed += (pool.capacity_reservation_group.lower(),)
    if pool.pods != MAX_PODS:
        fixed += (f"{pool.pods} pods",)
    return key + hashlib.sha256(repr(fixed).encode()).hexdigest()[:SUFFIX_LENGTH]


def node_labels(key: str, pool: PoolSettings) -> dict[str, str]:
    """Returns the labels of the pool's nodes: those of the user, of this program, and AKS's Spot label."""
    ours = {POOL_LABEL: key, GPU_LABEL: "true", **({SCRATCH_LABEL: "true"} if pool.scratch else {})}
    spot = {SPOT_LABEL: "spot"} if pool.spot else {}
    shared = {SLICING_LABEL: pool.slicing_profile, MIG_LABEL: pool.mig_profile}
    sharing = {label: profile for label, profile in shared.items() if profile}
    return dict(sorted({**pool.labels, **ours, **spot, **sharing}.items()))


def node_taints(pool: PoolSettings) -> tuple[str, ...]:
    """Returns the taints of the pool's nodes. AKS adds Spot taint and label itself, but rejects later updates of a pool
    that omit them (pulumi-azure-native#959).
    """
    return tuple(sorted({*pool.taints, *([SPOT_TAINT] if pool.spot else [])}))
