"""Settings -> platform -> workloads -> outputs."""

from __future__ import annotations

import pulumi

import workloads
from components.borrowed_platform import BorrowedPlatform
from components.existing import check_existing
from components.feature_check import check_infiniband
from components.platform import Platform
from components.platform_guard import PlatformGuard
from config import loader
from config.models import Settings
from config.warnings import warnings


def main() -> None:
    """Declares everything of the stack."""
    known = workloads.find()
    settings = loader.load(known)
    for warning in warnings(settings):
        pulumi.log.warn(warning)
    for placement in settings.placements.values():
        pulumi.log.info(str(placement))
    made = _all_that_is_made()
    platform = _platform(settings)
    context = platform.context()
    deployed = {
        name: known[placement.workload].deploy(context, placement) for name, placement in settings.placements.items()
    }

    if isinstance(platform, Platform):
        PlatformGuard("guard", context, tuple(made))
    for name, value in platform.outputs().items():
        pulumi.export(name, value)
    where = settings.placements
    pulumi.export("workloads", {name: found.shown(where[name]) for name, found in deployed.items()})
    details = {name: found.outputs(where[name]) for name, found in deployed.items()}
    pulumi.export("workloadDetails", pulumi.Output.secret(details))


def _all_that_is_made() -> list[pulumi.Resource]:
    """Grows with each resource that is declared from now on."""
    made: list[pulumi.Resource] = []

    def note(declared: pulumi.ResourceTransformationArgs) -> None:
        made.append(declared.resource)

    pulumi.runtime.register_stack_transformation(note)
    return made


def _platform(settings: Settings) -> Platform | BorrowedPlatform:
    """This stack's own, or that of the stack that `platformStack` names."""
    if settings.lender:
        return BorrowedPlatform("platform", settings, settings.lender)
    check_infiniband(settings.gpu_pools())
    check_existing(settings)
    return Platform("platform", settings)


main()
