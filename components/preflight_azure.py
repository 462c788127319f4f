"""What Azure would refuse in the middle of an update, looked up before anything is declared, in previews too.

Quota and VM sizes are looked up for pools that are made or grow, providers and rights for a cluster that is not there
yet. So most updates ask nothing. That machines are to be had, nobody can look up (AllocationFailed).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

import pulumi
from pulumi_azure_native import authorization

from components.arm import Arm, Json, Unread, connect
from components.cluster import SYSTEM_POOL
from components.existing import Existing
from config.rules.subscription import (
    IDENTITY_PROVIDERS,
    PROVIDERS,
    Objection,
    provider_objections,
    refusal,
    rights_objections,
    size_objections,
)
from config.rules.vcpu_quota import Growth, growths, quota_objections
from config.schema.models import Settings

_COMPUTE = "/providers/Microsoft.Compute"
_PERMISSIONS = "/providers/Microsoft.Authorization/permissions?api-version=2022-04-01"


@dataclass(frozen=True)
class Question:
    """What is asked of Azure."""

    about: str
    """As a message calls it that could not be read."""
    paths: tuple[str, ...]
    """Where the answer is; the first that is answered counts."""
    judge: Callable[[Json], Iterable[Objection]]


def check_subscription(settings: Settings, existing: Existing, reserved: Mapping[str, int]) -> None:
    """Raises pulumi.RunError, with everything that Azure would refuse. What cannot be looked up is a warning.

    `reserved` is how many nodes pools find reserved, by their keys.
    """
    _tell(_objections(settings, existing, reserved))


def check_rights(resource_group: str, region: str) -> None:
    """The same of the rights alone: an identity of a stack on another's platform has its roles in that one's group."""
    login = authorization.get_client_config()
    scope = f"/subscriptions/{login.subscription_id}"
    _tell(_looked_up([_about_rights(resource_group, scope, login.object_id)], region))


def _tell(found: Iterable[Objection]) -> None:
    objections = list(found)
    for each in objections:
        if not each.stops:
            pulumi.log.warn(str(each))
    if why := refusal(objections):
        raise pulumi.RunError(why)


def _objections(settings: Settings, existing: Existing, reserved: Mapping[str, int]) -> Iterator[Objection]:
    growing = growths(settings, existing.pools, SYSTEM_POOL, reserved)
    identities = bool(settings.storage.by_identity())  # new containers and namespaces get roles later too
    if existing.cluster and not growing and not identities:
        return
    login = authorization.get_client_config()
    scope = f"/subscriptions/{login.subscription_id}"
    asked = list(_about_pools(settings, growing, scope)) if growing else []
    if existing.cluster is None:
        asked += _about_providers(PROVIDERS, scope)
    if existing.cluster is None or identities:
        asked.append(_about_rights(existing.group, scope, login.object_id))
    if identities:
        asked += _about_providers(IDENTITY_PROVIDERS, scope)
    yield from _looked_up(asked, settings.location)


def _looked_up(asked: Sequence[Question], region: str) -> Iterator[Objection]:
    answers = _answers(connect(region), [path for question in asked for path in question.paths])
    for question in asked:
        found = [answers[path] for path in question.paths]
        answer = next((each for each in found if not isinstance(each, Unread)), found[-1])
        yield from _unread(question, answer) if isinstance(answer, Unread) else _judged(question, answer)


def _judged(question: Question, answer: Json) -> Iterable[Objection]:
    try:
        return list(question.judge(answer))
    except (AttributeError, TypeError, ValueError) as error:
        return _unread(question, Unread(f"an answer of another shape than Azure's ({error})"))


def _unread(question: Question, answer: Unread) -> Iterator[Objection]:
    what = f"{question.about} could not be looked up in Azure: {answer.why}. It may refuse the update later."
    yield Objection(what, stops=False)


def _answers(arm: Arm | Unread, paths: Iterable[str]) -> Mapping[str, Json | Unread]:
    return dict.fromkeys(paths, arm) if isinstance(arm, Unread) else arm.get({path: path for path in paths})


def _about_pools(settings: Settings, growing: list[Growth], scope: str) -> Iterator[Question]:
    region = settings.location
    pools: dict[str, str] = {}
    for growth in growing:
        name = growth.sku.name
        pools[name] = f"{pools[name]}, {growth.pool}" if name in pools else growth.pool
    yield Question(
        f"vCPU quota of {region}",
        (f"{scope}{_COMPUTE}/locations/{region}/usages?api-version=2024-07-01",),
        lambda answer: quota_objections(growing, answer, settings),
    )
    chosen = quote(f"location eq '{region}'")
    yield Question(
        f"whether {region} offers {', '.join(pools)}",
        (f"{scope}{_COMPUTE}/skus?api-version=2021-07-01&$filter={chosen}",),
        lambda answer: size_objections(pools, answer, region),
    )


def _about_providers(namespaces: Iterable[str], scope: str) -> Iterator[Question]:
    for namespace in namespaces:
        yield Question(
            f"whether the resource provider {namespace} is registered",
            (f"{scope}/providers/{namespace}?api-version=2021-04-01",),
            partial(provider_objections, namespace),
        )


def _about_rights(group: str, scope: str, deployer: str) -> Question:
    return Question(
        "whether whoever deploys may assign roles",
        (f"{scope}/resourceGroups/{group}{_PERMISSIONS}", f"{scope}{_PERMISSIONS}"),  # the group may not be there yet
        lambda answer: rights_objections(answer, deployer, scope),
    )
