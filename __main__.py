"""Settings -> platform -> workloads -> outputs."""

from __future__ import annotations

import pulumi

import workloads
from components.borrowed_platform import BorrowedPlatform
from components.feature_check import check_infiniband
from components.platform import Platform
from config import loader
from config.models import Settings
from config.warnings import warnings


def main() -> None:
    """Declares everything of the stack."""
    known = workloads.find()
    settings = loader.load(known)
    for warning in warnings(settings):
        pulumi.log.warn(warning)
    platform = _platform(settings)
    context = platform.context()
    deployed = {name: known[name].deploy(context, placement) for name, placement in settings.placements.items()}

    for name, value in platform.outputs().items():
        pulumi.export(name, value)
    pulumi.export("workloads", {name: found.outputs() for name, found in deployed.items()})  # where, and what shows it


def _platform(settings: Settings) -> Platform | BorrowedPlatform:
    """This stack's own, or that of the stack that `platformStack` names."""
    if settings.lender:
        return BorrowedPlatform("platform", settings, settings.lender)
    check_infiniband(settings.gpu_pools())
    return Platform("platform", settings)


main()
