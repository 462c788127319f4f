"""Looks up management locks before anything is declared: Azure would refuse a change or a deletion half-way."""

from __future__ import annotations

from pulumi_azure_native import authorization

from components.arm import Unread, connect
from components.cluster import SYSTEM_POOL
from components.existing import Existing
from components.preflight_azure import tell
from components.questions import answers_at
from config.rules.locks import LOCKS, lock_objections
from config.rules.vcpu_quota import growths
from config.schema.models import Settings

_VERSION = "api-version=2016-09-01"


def check_locks(settings: Settings, existing: Existing) -> None:
    """Warns of locks. Raises pulumi.RunError for one that forbids what the update does.

    Locks that cannot be read are not reported, because few subscriptions have any.
    """
    subscription = f"/subscriptions/{authorization.get_client_config().subscription_id}"
    group = f"{subscription}/resourceGroups/{existing.group}"
    paths = [f"{group}{LOCKS}?{_VERSION}", f"{subscription}{LOCKS}?{_VERSION}&$filter=atScope%28%29"]
    answers = answers_at(connect(settings.location), paths).values()
    locks = [lock for each in answers if not isinstance(each, Unread) for lock in each.get("value", ())]
    growing = growths(settings, existing.pools, SYSTEM_POOL, {})
    tell(lock_objections(locks, group, [f"the old {each.pool}" for each in growing if each.replaced]))
