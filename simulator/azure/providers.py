"""The subscription's resource providers (Providers_*), list of resources, and name availability."""

from __future__ import annotations

import re
from http import HTTPStatus

from simulator.azure import api_versions
from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, Problem, bad_request
from simulator.azure.ids import ResourceId
from simulator.azure.resource_types import kinds
from simulator.azure.rest import PathRequest
from simulator.azure.schema import schemas
from simulator.azure.store import Body, Record
from simulator.azure.types import _rules

TYPE = "Microsoft.Resources/providers"
_STATE = "state"
_CONDITION = re.compile(r"(resourceType|name|resourceGroup|location) eq '([^']*)'", re.IGNORECASE)
_LISTED = ("location", "tags", "kind", "sku", "identity")


def all_of_them(world: World, _request: PathRequest) -> Body:
    return {"value": [_view(world, name) for name in world.subscription.providers]}


def one(world: World, request: PathRequest, change: str = "") -> Body:
    """Returns or changes a provider (Providers_*). A change is immediate, unlike in Azure. Raises ArmError (404)."""
    namespace = next(
        (name for name in world.subscription.providers if name.lower() == request["provider"].lower()), None
    )
    if namespace is None:
        message = f"The resource namespace '{request['provider']}' is invalid, or not simulated."
        raise ArmError(HTTPStatus.NOT_FOUND, "InvalidResourceNamespace", message)
    if change:
        world.store.put(Record(_id(world, namespace), {}, facts={_STATE: change}))
    return _view(world, namespace)


def check_registered(world: World, resource_type: str) -> None:
    """Raises ArmError (409) if the type's provider is not registered."""
    namespace = resource_type.partition("/")[0]
    if namespace not in world.subscription.providers or _state(world, namespace) in ("Registered", "Registering"):
        return
    code = "MissingSubscriptionRegistration"
    message = (
        f"The subscription is not registered to use namespace '{namespace}'. "
        "See https://aka.ms/rps-not-found for how to register subscriptions."
    )
    raise ArmError(HTTPStatus.CONFLICT, code, message, details=[Problem(namespace, message, code)])


def resources(world: World, request: PathRequest) -> Body:
    """Returns resources with a location (Resources_List, _ListByResourceGroup). Raises ArmError for unknown filters."""
    text = request.query.get("$filter", "")
    wanted = {name.lower(): value.lower() for name, value in _CONDITION.findall(text)}
    if _CONDITION.sub("", text).replace(" and ", "").strip():
        raise bad_request(
            f"The filter '{text}' is not supported; only name, resourceType and location eq '<value>' are."
        )
    if "group" in request.names:
        wanted["resourcegroup"] = request["group"].lower()
    listed = [record for record in world.store.all() if record.id.group and "location" in record.body]
    return {"value": [_entry(world, each) for each in listed if _fits(each, wanted)]}


def check_name(world: World, request: PathRequest, of: str) -> Body:
    """Checks a new resource's name (StorageAccounts_CheckNameAvailability, Registries_CheckNameAvailability)."""
    name, schema = request.field("name"), schemas()[of.lower()]
    if problems := schema.name_problems(name):
        return {"nameAvailable": False, "reason": "AccountNameInvalid", "message": problems[0].message}
    resource = ResourceId("", of, (name,))
    if _rules.named(world, of, name) or _rules.taken_elsewhere(world, resource):
        is_account = of == "Microsoft.Storage/storageAccounts"
        taken = f"storage account named {name} is already taken" if is_account else f"registry {name} is already in use"
        return {"nameAvailable": False, "reason": "AlreadyExists", "message": f"The {taken}."}
    return {"nameAvailable": True}


def _fits(record: Record, wanted: dict[str, str]) -> bool:
    has = {
        "name": record.id.name,
        "resourcetype": record.id.type,
        "resourcegroup": record.id.group or "",
        "location": record.body["location"],
    }
    return all(has[name].lower() == value for name, value in wanted.items())


def _entry(world: World, record: Record) -> Body:
    shown = kinds()[record.id.type.lower()].view(world, record)
    own = {"id": record.id.text, "name": record.id.name, "type": record.id.type}
    return own | {name: shown[name] for name in _LISTED if name in shown}


def _id(world: World, namespace: str) -> ResourceId:
    return ResourceId(f"/subscriptions/{world.subscription.subscription_id}", TYPE, (namespace,))


def _state(world: World, namespace: str) -> str:
    changed = world.store.get(_id(world, namespace))
    return changed.facts[_STATE] if changed else world.subscription.providers[namespace]


def _view(world: World, namespace: str) -> Body:
    own = [schema for schema in schemas().values() if schema.type.partition("/")[0] == namespace]
    types = [
        {
            "resourceType": schema.type.partition("/")[2],
            "locations": list(world.subscription.regions),
            "apiVersions": list(dict.fromkeys((api_versions.newest(schema.type), *reversed(schema.api_versions)))),
        }
        for schema in own
    ]
    return {
        "id": f"/subscriptions/{world.subscription.subscription_id}/providers/{namespace}",
        "namespace": namespace,
        "registrationPolicy": "RegistrationRequired",
        "registrationState": _state(world, namespace),
        "resourceTypes": types,
    }
