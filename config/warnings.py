"""What is no mistake, but will not go well: said in previews too, and refused by nobody."""

from __future__ import annotations

from collections.abc import Iterator

from config.errors import Problem, naming, set_command
from config.models import Placement, Settings
from config.platform_stack import in_platform
from config.storage import StorageSettings, next_rotation


def warnings(settings: Settings) -> Iterator[str]:
    """What to say of a stack's workloads, each with the command that mends it."""
    for name, placement in settings.placements.items():
        found = [*_unmounted(name, placement, settings.storage), *_outlived(name, placement, settings.storage)]
        if settings.lender:
            found = in_platform(found, str(settings.lender.stack))
        yield from (naming(settings.stack, str(problem)) for problem in found)


def _unmounted(name: str, placement: Placement, storage: StorageSettings) -> Iterator[Problem]:
    """A stack has no driver on its way from one to the other, or because its users bring one along."""
    containers = placement.options.containers
    if storage.driver == "none" and containers:
        path = ("storage", "driver")
        what = f"is none: workload {name} waits until something else mounts {', '.join(containers)}"
        yield Problem(path, what, "addon or chart", set_command(path, "addon"))


def _outlived(name: str, placement: Placement, storage: StorageSettings) -> Iterator[Problem]:
    """A training of weeks, whose mounts fail when their SAS ends. That of a year outlasts it."""
    end = placement.options.open_end
    for container in placement.options.containers if end else ():
        chosen = storage.containers[container]
        if chosen.sas == "service" and chosen.days == chosen.most_days:
            continue
        path = ("storage", "containers", container, "days")
        what = f"is {chosen.days}: without {end}, workload {name} runs on when the SAS has ended, and fails"
        allowed = f"at most {chosen.most_days}; or another storage.rotation before the SAS ends"
        if chosen.days < chosen.most_days:
            fix = set_command(path, chosen.most_days)
        else:
            fix = set_command(("storage", "rotation"), next_rotation(storage.rotation))
        yield Problem(path, what, allowed, fix)
