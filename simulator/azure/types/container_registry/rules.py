"""Container registries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request, conflict
from simulator.azure.ids import ResourceId
from simulator.azure.kind import Kind
from simulator.azure.registries import DOMAIN
from simulator.azure.store import Body, Record
from simulator.azure.types import _rules
from simulator.azure.types.private_endpoint import rules as endpoints

TYPE = "Microsoft.ContainerRegistry/registries"
_PREMIUM = "Premium"
_LINK_HELP = "For more information, please visit https://aka.ms/acr/private-link."
_CHECK_NAME = "https://docs.microsoft.com/en-us/rest/api/containerregistry/registries/checknameavailability"


class ContainerRegistries(Kind):
    patches_tags = False

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        _rules.check_region(world, record, body, existing)
        if existing is None:
            _check_name(world, record.id)
        _check_tier(world, record.id, body)
        world.registries.add(record.id.name)
        _rules.save(world, record, body)

    def removed(self, world: World, record: Record) -> None:
        world.registries.remove(record.id.name)

    def names(self, world: World, record: Record) -> Mapping[str, Sequence[str]]:
        """Returns the data endpoint's name first, because Azure assigns addresses in this order."""
        return {"registry": [_data_host(record.id, record.body), f"{record.id.name.lower()}{DOMAIN}"]}

    def unlinkable(self, record: Record) -> str:
        """Returns an error text (a guess) unless the tier is Premium."""
        tier = record.body["sku"]["name"]
        return "" if tier == _PREMIUM else f"Private endpoints are not supported for the SKU {tier}. {_LINK_HELP}"

    def view(self, world: World, record: Record) -> Body:
        sku = record.body["sku"]
        return super().view(world, record) | {"sku": sku | {"tier": sku["name"]}}

    def outputs(self, world: World, record: Record) -> Body:
        hosts = [_data_host(record.id, record.body)] if record.properties["dataEndpointEnabled"] else []
        return {
            "creationDate": _rules.created_at(record),
            "dataEndpointHostNames": hosts,
            "loginServer": f"{record.id.name.lower()}{DOMAIN}",
            "privateEndpointConnections": endpoints.connections(world, record.id, "actionsRequired"),
        }


KIND = ContainerRegistries()


def named(world: World, name: str) -> Record | None:
    return _rules.named(world, TYPE, name)


def is_public(registry: Record) -> bool:
    return bool(registry.properties.get("publicNetworkAccess") != "Disabled")


def _data_host(resource: ResourceId, body: Body) -> str:
    return f"{resource.name.lower()}.{body['location']}.data{DOMAIN}"


def _check_tier(world: World, resource: ResourceId, body: Body) -> None:
    """One error text has a source: Azure-Samples/dotNET-Frontend-AB-Testing-on-Azure-Container-Apps#5."""
    tier, properties = body["sku"]["name"], body["properties"]
    wanted = {
        "Disabling public network access": properties["publicNetworkAccess"] == "Disabled",
        "Enabling data endpoint": properties["dataEndpointEnabled"],
        "Private endpoint": bool(endpoints.of_service(world, resource)),
    }
    for what in (what for what, is_wanted in wanted.items() if is_wanted and tier != _PREMIUM):
        code = f"{what.title().replace(' ', '')}NotSupported"
        raise bad_request(f"{what} is not supported for the SKU {tier}. {_LINK_HELP}", code=code)


def _check_name(world: World, resource: ResourceId) -> None:
    if named(world, resource.name) or _rules.taken_elsewhere(world, resource):
        message = (
            f"The registry DNS name {resource.name.lower()}{DOMAIN} is already in use. "
            f"You can check if the name is already claimed using following API: {_CHECK_NAME}"
        )
        raise conflict(message, code="AlreadyInUse")
