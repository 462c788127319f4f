"""The actions (POST) of resource types."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from simulator.azure import credentials, service_sas
from simulator.azure.kinds import accounts, clusters
from simulator.azure.store import Body, Record
from simulator.azure.world import World

Action = Callable[[World, Record, Mapping[str, str], Body], Body]
"""Answers from the resource, the query and the request's body; raises ArmError."""
_CLUSTER, _ACCOUNT = clusters.TYPE.lower(), accounts.TYPE.lower()

ACTIONS: Mapping[tuple[str, str], Action] = {
    (_CLUSTER, "listclusteradmincredential"): lambda world, record, _query, _body: credentials.admin(world, record),
    (_CLUSTER, "listclusterusercredential"): lambda world, record, query, _body: credentials.user(
        world, record, query.get("format")
    ),
    (_ACCOUNT, "listkeys"): lambda _world, record, _query, _body: accounts.keys(record),
    (_ACCOUNT, "listservicesas"): lambda _world, record, _query, body: service_sas.issue(record, body),
}
"""By type and name, both in lower case."""
