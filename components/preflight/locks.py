"""Checks management locks before any resource is declared, because Azure would reject a change or deletion halfway.

Azure lists locks at Microsoft.Authorization/locks (azure-rest-api-specs, ManagementLocks_ListAtResourceGroupLevel). A
lock also applies to scopes below its own. ReadOnly also forbids POST requests, such as for the cluster's credentials
(learn.microsoft.com/azure/azure-resource-manager/management/lock-resources).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pulumi_azure_native import authorization

from components.azure.cluster import SYSTEM_POOL
from components.preflight.arm import Unread, answers_at, connect
from components.preflight.azure import report
from components.preflight.existing import Existing
from config.rules.subscription import Json, Objection
from config.rules.vcpu_quota import growths
from config.schema.models import Settings

LOCKS = "/providers/Microsoft.Authorization/locks"
_VERSION = "api-version=2016-09-01"


def lock_objections(locks: Iterable[Json], group: str, deleted: Iterable[str]) -> Iterator[Objection]:
    """Yields an objection for each lock, which stops the update if the lock forbids it.

    `locks` are the locks of the group, its resources and its subscription. `group` is the id of the stack's group.
    `deleted` names what the update deletes.
    """
    pools = ", ".join(deleted)
    for lock in {str(each["id"]).lower(): each for each in locks}.values():
        scope, level = str(lock["id"]).partition(LOCKS)[0], str(lock["properties"]["level"])
        above = f"{group}/".lower().startswith(f"{scope}/".lower())
        what = f"lock {lock['name']} ({level}) of {scope}"
        steps = (
            f"az lock show --ids {lock['id']}    # its notes may have the reason",
            f"az lock delete --ids {lock['id']}    # only if the lock is not needed; an owner can delete it",
        )
        if above and level == "ReadOnly":
            yield Objection(f"{what}: Azure refuses every change of the stack", steps)
        elif above and pools:
            yield Objection(f"{what}: Azure refuses to delete {pools}, which this update replaces", steps)
        else:
            refused = "change or delete" if level == "ReadOnly" else "delete"
            consequence = f"`pulumi destroy`, or an update that would {refused} them, fails halfway"
            yield Objection(f"{what}: Azure refuses to {refused} resources there; {consequence}", steps, stops=False)


def check_locks(settings: Settings, existing: Existing) -> None:
    """Warns of locks. Raises pulumi.RunError if a lock forbids the update.

    Does not report that locks cannot be read, because few subscriptions have locks.
    """
    subscription = f"/subscriptions/{authorization.get_client_config().subscription_id}"
    group = f"{subscription}/resourceGroups/{existing.group}"
    paths = [f"{group}{LOCKS}?{_VERSION}", f"{subscription}{LOCKS}?{_VERSION}&$filter=atScope%28%29"]
    answers = answers_at(connect(settings.location), paths).values()
    locks = [lock for each in answers if not isinstance(each, Unread) for lock in each.get("value", ())]
    growing = growths(settings, existing.pools, SYSTEM_POOL, {})
    report(lock_objections(locks, group, [f"the old {each.pool}" for each in growing if each.replaced]))
