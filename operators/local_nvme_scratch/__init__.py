"""Local NVMe scratch: a fast file system on nodes that have the disks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pulumi

from components.operators import Installed, Operator, Site
from config.facts.scheduling import SCRATCH_FOLDER
from config.problems.errors import Problem
from config.problems.fixes import set_command
from config.schema.models import StackFile
from config.schema.operators import NODE_TOOLS_NAMESPACE, Capability, Installation, OperatorSettings
from operators.local_nvme_scratch.component import NAME, LocalNvmeScratch


class LocalNvmeScratchSettings(OperatorSettings):
    """What it may do to disks."""

    wipe_foreign: bool = False
    """Whether it wipes local NVMe disks that hold data of others (LVM, RAID, file systems, partition tables), on all
    nodes; by default it refuses them. Disks in use are refused in any case.
    """


class _LocalNvmeScratch(Operator[LocalNvmeScratchSettings]):
    name = NAME
    title = "local NVMe scratch"
    summary = "Makes and mounts NVMe scratch, on pools that have it."
    has_chart = False
    namespace = NODE_TOOLS_NAMESPACE
    settings = LocalNvmeScratchSettings

    def provides(self, settings: LocalNvmeScratchSettings) -> Mapping[Capability, str]:
        return {"NVMe scratch": SCRATCH_FOLDER}

    def is_wanted(self, stack: StackFile) -> bool:
        """On pools that have `localNvmeScratch`."""
        return stack.operators.of(self).enabled and any(pool.scratch for pool in stack.gpu_pools().values())

    def problems(self, installation: Installation) -> Iterator[Problem]:
        """A pool that asks for scratch needs what makes it; where a VM size merely has the disks, it may be off."""
        if installation.stack.operators.of(self).enabled:
            return
        path = ("operators", "localNvmeScratch", "enabled")
        for key, pool in installation.stack.pools.items():
            if pool.local_nvme_scratch:
                what = f"is false, but pools.{key}.localNvmeScratch is true, and nothing else makes it"
                yield Problem(path, what, f"true, or a pool {key} without localNvmeScratch", set_command(path, True))

    def install(self, site: Site, settings: LocalNvmeScratchSettings, opts: pulumi.ResourceOptions) -> Installed:
        return LocalNvmeScratch(self.name, site, opts, wipe_foreign=settings.wipe_foreign)


OPERATOR = _LocalNvmeScratch()
