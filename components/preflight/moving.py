"""Rejects moving an existing stack to another region, group or name, and describes the three alternatives.

Azure cannot move a stack: the provider replaces resources if their location or path changes (pulumi-azure-native#77),
and data is lost. Pulumi would also fail. To find what to delete before the group, it asks the Kubernetes provider
whether the provider's cluster is replaced. If so, Pulumi closes its connection to the provider (Registry.Diff in
pkg/resource/deploy/providers/registry.go, v3.246.0 and still v3.259.0). It then cannot delete the cluster's objects,
and only prints `grpc: the client connection is closing` (pulumi/pulumi#14650). `pulumi destroy` does not ask the
provider, and works.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from components.platform_guard import FILES_OVERRIDE
from config.problems.errors import lines
from config.problems.fixes import Fix, Path, remove_command, run, set_command
from config.schema.models import Settings

_GROUP = ("cluster", "resourceGroup")


@dataclass(frozen=True)
class Place:
    location: str
    group: str
    cluster: str


def chosen_place(settings: Settings) -> Place:
    return Place(settings.location, settings.names.resource_group, settings.names.cluster)


def moving_refusal(settings: Settings, place: Place, lost: Iterable[str]) -> str:
    differences = list(_differences(settings, place))
    keep = [f"    {fix.text(settings.stack)}" for _, fix in differences]
    protected = any(account.settings.protect for account in settings.storage.made_accounts())
    protected |= settings.storage.protect and (settings.shared_files == "nfs" or settings.keeps_files)
    stack = settings.stack
    unprotect = f"`pulumi state unprotect -s {stack} --all` and, if claims keep files, `{FILES_OVERRIDE}`"
    destroying = f" (which fails until you run {unprotect})" if protected else ""
    return lines(
        *(what for what, _ in differences),
        "Azure cannot move the stack. Everything would be re-created, and data would be lost. Nothing was changed.",
        *(f"    {each}" for each in lost),
        "Keep the stack where it is, and then `pulumi up` again:",
        *keep,
        "Or create a second stack to copy the data to, and keep this stack:",
        f"    {' && '.join(_create_second_stack(settings, place))}",
        *keep,
        f"Or destroy{destroying} and re-create the stack:",
        f"    pulumi destroy -s {stack} && pulumi up -s {stack}",
    )


def _differences(settings: Settings, place: Place) -> Iterator[tuple[str, Fix]]:
    wanted = chosen_place(settings)
    if wanted.cluster != place.cluster:
        was = place.cluster.removeprefix(f"{settings.project}-")
        yield (
            f"the cluster is {place.cluster}, and would be {wanted.cluster}",
            run(f"pulumi stack rename -s {settings.stack} {was}"),
        )
    elif wanted.group != place.group:
        fix = remove_command(_GROUP) if place.group == place.cluster else set_command(_GROUP, place.group)
        yield f"the resource group is {place.group}, and would be {wanted.group}", fix
    if wanted.location != place.location:
        yield (
            f"{settings.location_key} is {wanted.location}, but the stack is in {place.location}",
            set_command((settings.location_key,), place.location),
        )


def _create_second_stack(settings: Settings, place: Place) -> Iterator[str]:
    other = f"{settings.stack}-2"
    yield f"pulumi stack init {other} --copy-config-from {settings.stack} --no-select"
    names: dict[Path, str | None] = {
        _GROUP: settings.cluster.resource_group if settings.names.resource_group == place.group else None,
        ("registry", "name"): settings.registry.name,
        **{(*each.path, "accountName"): each.settings.account_name for each in settings.storage.all_accounts()},
    }
    yield from (remove_command(path).text(other) for path, name in names.items() if name)
    yield f"pulumi up -s {other}"
