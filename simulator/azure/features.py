"""The subscription's preview features (`Microsoft.Features`).

The azure-native plugin uses subscriptionFeatureRegistrations, and the Azure CLI uses providers/features.
"""

from __future__ import annotations

from http import HTTPStatus

from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError
from simulator.azure.ids import ResourceId
from simulator.azure.kind import envelope
from simulator.azure.rest import PathRequest
from simulator.azure.store import Body, Record

TYPE = "Microsoft.Features/featureProviders/subscriptionFeatureRegistrations"
_STATE, _SINCE = "state", "since"
REGISTERED, UNREGISTERED = "Registered", "Unregistered"
CHANGING_S = 2.0
"""The duration of a change. In Azure, it is a quarter of an hour."""
INFINIBAND = "Microsoft.ContainerService/AKSInfinibandSupport"


def registered(world: World, feature: str) -> bool:
    return _state(world, feature) == REGISTERED


def features(world: World, request: PathRequest) -> Body:
    """Returns the features of one provider (Features_List) or of all providers (Features_ListAll)."""
    above = f"{request['provider']}/".lower() if "provider" in request.names else ""
    return {"value": [_feature(world, each) for each in world.subscription.features if each.lower().startswith(above)]}


def feature(world: World, request: PathRequest, change: str = "") -> Body:
    """Returns or changes a feature (Features_Get, _Register and _Unregister). Raises ArmError (404)."""
    return _feature(world, _changed(world, request, change))


def registration(world: World, request: PathRequest, change: str = "") -> Body:
    """Returns or changes a registration (SubscriptionFeatureRegistrations_*). Raises ArmError (404)."""
    return _registration(world, _changed(world, request, change))


def _registration(world: World, name: str) -> Body:
    """Returns a feature's registration, which unregistered features have too."""
    provider, _, own = name.partition("/")
    properties = {
        "subscriptionId": world.subscription.subscription_id,
        "tenantId": world.subscription.tenant_id,
        "providerNamespace": provider,
        "featureName": own,
        "state": _state(world, name),
        "registrationDate": None,
    }
    resource = ResourceId(f"/subscriptions/{world.subscription.subscription_id}", TYPE, (provider, own))
    return envelope(Record(resource, {}), {"properties": properties})


def _feature(world: World, name: str) -> Body:
    provider, _, own = name.partition("/")
    scope = f"/subscriptions/{world.subscription.subscription_id}/providers/Microsoft.Features/providers/{provider}"
    shown = {"id": f"{scope}/features/{own}", "name": name, "type": "Microsoft.Features/providers/features"}
    return shown | {"properties": {"state": _state(world, name)}}


def _changed(world: World, request: PathRequest, state: str) -> str:
    name = _known(world, request)
    if state:
        world.store.put(Record(_stored(world, name), {}, facts={_STATE: state, _SINCE: world.faults.clock()}))
    return name


def _stored(world: World, name: str) -> ResourceId:
    """Returns an id that is not a child's id, because restarts delete children without a parent."""
    scope = f"/subscriptions/{world.subscription.subscription_id}"
    return ResourceId(scope, "Microsoft.Features/states", (name.replace("/", "."),))


def _known(world: World, request: PathRequest) -> str:
    wanted = f"{request['provider']}/{request['feature']}"
    for name in world.subscription.features:
        if name.lower() == wanted.lower():
            return name
    known = ", ".join(world.subscription.features)
    message = f"The feature '{request['feature']}' could not be found. Known to the simulated subscription: {known}."
    raise ArmError(HTTPStatus.NOT_FOUND, "FeatureNotFound", message)


def _state(world: World, feature: str) -> str:
    changed = world.store.get(_stored(world, feature))
    if changed is None:
        return world.subscription.features[feature]
    state: str = changed.facts[_STATE]
    is_changing = world.faults.clock() < changed.facts.get(_SINCE, 0) + CHANGING_S
    return f"{state.removesuffix('ed')}ing" if is_changing else state
