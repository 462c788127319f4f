"""Settings of the NVIDIA GPU Operator, and their validation against other settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from config.problems.errors import Problem
from config.problems.fixes import Path, remove_command, set_command
from config.schema.operators import ChartSettings, Installation, OperatorSpec

KernelModules = Literal["auto", "open", "proprietary"]
"""Values of the chart's `driver.kernelModuleType` (gpu-operator v26.7.0)."""
_RDMA = ("driver", "rdma", "enabled")
_STRATEGY = ("mig", "strategy")
_VALUES: Path = ("operators", "gpuOperator", "values")


class GpuOperatorSettings(ChartSettings):
    """GPU driver, container toolkit and device plugin."""

    kernel_module_type: KernelModules = "auto"
    """NVIDIA's kernel modules on all GPU nodes: `open`, `proprietary`, or what the driver's installer recommends for
    the GPU (`auto`). For T4, see [drivers.md](drivers.md#kernel-modules-of-t4).
    """

    @property
    def gpu_driver_minutes(self) -> int:
        """The maximum time that compiling the driver takes, in minutes (docs/drivers.md)."""
        driver = self.values.get("driver")
        chosen = driver if isinstance(driver, dict) else {}
        return 8 if chosen.get("enabled", True) and not chosen.get("usePrecompiled") else 0


def fabric_problems(operator: OperatorSpec[GpuOperatorSettings], installation: Installation) -> Iterator[Problem]:
    """Yields a problem if driver.rdma is on and the stack has pools both with and without InfiniBand.

    With driver.rdma, the GPU driver waits for OFED on all nodes with a PCI function of vendor 15b3
    (k8s-driver-manager). Accelerated networking gives each VM such a function, for Ethernet. OFED is only installed on
    nodes with InfiniBand, so the driver of other nodes would wait forever. The ClusterPolicy has one driver for all
    pools.
    """
    sizes = {key: pool.sku for key, pool in installation.stack.gpu_pools().items()}
    without = [key for key, size in sizes.items() if not size.infiniband]
    mixed = without and any(size.infiniband for size in sizes.values())
    enabled = installation.brought("InfiniBand").enabled and installation.stack.operators.of(operator).enabled
    if mixed and enabled and installation.value(operator, *_RDMA) is not False:
        path = (*_VALUES, *_RDMA)
        what = f"is on, but pool {', '.join(without)} has no InfiniBand: GPU drivers there would wait for OFED forever"
        allowed = "false (GPUDirect RDMA then uses DMA-BUF), or a separate stack for pools without InfiniBand"
        yield Problem(path, what, allowed, set_command(path, False))


def sharing_problems(operator: OperatorSpec[GpuOperatorSettings], installation: Installation) -> Iterator[Problem]:
    pools = installation.stack.gpu_pools()
    sliced = [key for key, pool in pools.items() if pool.slicing_profile]
    partitioned = [key for key, pool in pools.items() if pool.mig_profile]
    taken = {
        ("devicePlugin", "config"): (sliced, "gpuSlices", None),
        ("migManager", "enabled"): (partitioned, "migProfile", True),
        ("migManager", "config"): (partitioned, "migProfile", None),
        _STRATEGY: (partitioned, "migProfile", "single"),
    }
    for value, (keys, setting, needed) in taken.items():
        given = installation.value(operator, *value)
        if keys and given not in (None, needed):
            path = (*_VALUES, *value)
            what = f"is set, but the program sets it for pools.{keys[0]}.{setting}"
            allowed = "nothing" if needed is None else f"no value, or {str(needed).lower()}"
            yield Problem(path, what, allowed, remove_command(path), shows_value=False)
