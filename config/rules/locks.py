"""Management locks: what Azure's answers say that it would refuse of an update, or of a `pulumi destroy`.

Answers are of Microsoft.Authorization/locks (azure-rest-api-specs, ManagementLocks_ListAtResourceGroupLevel). A lock
also holds for all scopes below its own. ReadOnly forbids POST requests too, such as the one for the cluster's
credentials (learn.microsoft.com/azure/azure-resource-manager/management/lock-resources).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from config.rules.subscription import Json, Objection

LOCKS = "/providers/Microsoft.Authorization/locks"


def lock_objections(locks: Iterable[Json], group: str, deleted: Iterable[str]) -> Iterator[Objection]:
    """Yields what each lock forbids.

    Args:
        locks: The locks of the group, of what is in it, and of its subscription.
        group: The id of the stack's resource group.
        deleted: What the update deletes, as messages name it.
    """
    pools = ", ".join(deleted)
    for lock in {str(each["id"]).lower(): each for each in locks}.values():
        scope, level = str(lock["id"]).partition(LOCKS)[0], str(lock["properties"]["level"])
        above = f"{group}/".lower().startswith(f"{scope}/".lower())
        what = f"lock {lock['name']} ({level}) of {scope}"
        steps = (
            f"az lock show --ids {lock['id']}    # its notes may say why it is there",
            f"az lock delete --ids {lock['id']}    # only if you decide that it may go; an owner can do it",
        )
        if above and level == "ReadOnly":
            yield Objection(f"{what}: Azure refuses every change of the stack", steps)
        elif above and pools:
            yield Objection(f"{what}: Azure refuses to delete {pools}, which this update replaces", steps)
        else:
            refused = "change or delete" if level == "ReadOnly" else "delete"
            consequence = "a `pulumi destroy`, or an update that does it, fails half-way"
            yield Objection(f"{what}: Azure refuses to {refused} what is there; {consequence}", steps, stops=False)
