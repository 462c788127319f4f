"""Settings of the NVIDIA GPU Operator."""

from __future__ import annotations

from typing import Literal

from config.schema.operators import ChartSettings

KernelModules = Literal["auto", "open", "proprietary"]
"""Values of the chart's `driver.kernelModuleType` (gpu-operator v26.7.0)."""


class GpuOperatorSettings(ChartSettings):
    """GPU driver, container toolkit and device plugin."""

    kernel_module_type: KernelModules = "auto"
    """NVIDIA's kernel modules on all GPU nodes: `open`, `proprietary`, or what the driver's installer recommends for
    the GPU (`auto`). For T4, see [drivers.md](drivers.md#kernel-modules-of-t4).
    """

    @property
    def gpu_driver_minutes(self) -> int:
        """How many minutes the GPU driver is compiled at most (docs/drivers.md)."""
        driver = self.values.get("driver")
        chosen = driver if isinstance(driver, dict) else {}
        return 8 if chosen.get("enabled", True) and not chosen.get("usePrecompiled") else 0
