"""Preview features of the subscription (`Microsoft.Features`): what is registered, and changing it."""

from __future__ import annotations

from http import HTTPStatus

from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError
from simulator.azure.ids import ResourceId
from simulator.azure.kind import envelope
from simulator.azure.store import Body, Record

TYPE = "Microsoft.Features/featureProviders/subscriptionFeatureRegistrations"
API_VERSIONS = ("2021-07-01",)
INFINIBAND = "Microsoft.ContainerService/AKSInfinibandSupport"


def registered(world: World, feature: str) -> bool:
    return _state(world, feature) == "Registered"


def view(world: World, resource: ResourceId) -> Body:
    """A registration as GET shows it, which a feature that is not registered has too. Raises ArmError (404)."""
    feature = _known(world, resource)
    namespace, _, name = feature.partition("/")
    properties = {
        "subscriptionId": world.subscription.subscription_id,
        "tenantId": world.subscription.tenant_id,
        "providerNamespace": namespace,
        "featureName": name,
        "state": _state(world, feature),
        "registrationDate": None,
    }
    return envelope(Record(resource, {}), {"properties": properties})


def change(world: World, resource: ResourceId, state: str) -> Body:
    """Sets `Registered` or `NotRegistered`, at once where Azure takes a quarter of an hour."""
    feature = _known(world, resource)
    world.store.put(Record(resource, {"properties": {"state": state}}, facts={"feature": feature}))
    return view(world, resource)


def _known(world: World, resource: ResourceId) -> str:
    wanted = "/".join(resource.names)
    for feature in world.subscription.features:
        if feature.lower() == wanted.lower():
            return feature
    known = ", ".join(world.subscription.features)
    message = f"The feature '{resource.name}' could not be found. Known to the simulated subscription: {known}."
    raise ArmError(HTTPStatus.NOT_FOUND, "FeatureNotFound", message)


def _state(world: World, feature: str) -> str:
    for record in world.store.all(TYPE):
        if record.facts["feature"] == feature:
            state: str = record.properties["state"]
            return state
    return world.subscription.features[feature]
