"""Agent pools: AKS's rules beyond the schema.

Error texts are Azure's if an issue or support article quotes them (Azure/AKS, MicrosoftDocs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from config.data import skus
from config.data.scheduling import SPOT_LABEL, SPOT_TAINT
from simulator.azure import features, quota, reservations
from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request, conflict, in_progress
from simulator.azure.ids import ResourceId
from simulator.azure.kind import Kind, Use, envelope
from simulator.azure.schema import schemas
from simulator.azure.store import Body, Record
from simulator.azure.types import _rules
from simulator.azure.types.agent_pool import checks, life, nodes, os_disks, subnets
from simulator.azure.types.agent_pool.life import of_cluster
from simulator.host import similar

TYPE = life.TYPE
_DEFAULT_SIZE = "Standard_D4ads_v5"
_UNSHOWN: Body = {"enableUltraSSD": False, "nodeTaints": [], "scaleSetPriority": "Regular"}
"""Default values that ARM omits from responses."""


class AgentPools(Kind):
    """Child resources of a cluster. The request that creates a cluster contains pools inline."""

    asynchronous = True
    actions = {
        "upgradenodeimageversion": lambda world, record, _query, _body: _upgrade_image(world, record),
        "deletemachines": lambda world, record, _query, body: _delete_machines(world, record, body),
    }

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        cluster = _rules.found(world, record.id.parent)
        if cluster.busy:
            raise in_progress(f"operation ({cluster.state})")
        life.check_runs(cluster, "updating")
        store(world, cluster, record, body, existing)

    def check_idle(self, world: World, record: Record) -> None:
        if record.busy:
            raise in_progress(f"agentpool operation ({record.id.name} - {record.state})")

    def check_delete(self, world: World, record: Record) -> None:
        others = [pool for pool in of_cluster(world, record.id.parent) if pool.id != record.id]
        if not others:
            raise conflict("There has to be at least one agent pool.")
        if not any(checks.is_system(pool.properties) for pool in others):
            raise conflict("There has to be at least one system agent pool.")

    def uses(self, world: World, record: Record) -> list[Use]:
        return subnets.uses(record)

    def view(self, world: World, record: Record) -> Body:
        return envelope(record, {"properties": view_properties(record)})

    def lock_owner(self, resource: ResourceId) -> ResourceId:
        return resource.parent

    def prepare(self, world: World, record: Record, pause: Callable[[float], object]) -> None:
        life.allocate(world, record, pause)

    def settle(self, world: World, record: Record) -> None:
        life.check_ready(life.boot(world, self.lock_owner(record.id)), record)
        life.check_allocated(world, record)

    def succeeded(self, world: World, record: Record) -> None:
        if version := world.subscription.kubernetes(record.properties["orchestratorVersion"]):
            record.facts["kubernetes"] = version

    def end(self, world: World, record: Record) -> None:
        """Removes the pool's nodes."""
        self.settle(world, record)


KIND = AgentPools()


def _upgrade_image(world: World, record: Record) -> None:
    """Does nothing, because the simulator has one node image per OS SKU and Kubernetes version."""
    KIND.check_idle(world, record)
    record.state = "UpgradingNodeImageVersion"
    world.store.put(record)


def _delete_machines(world: World, record: Record, body: Body) -> None:
    """Deletes machines without a drain (AKS's page on deleting machines)."""
    KIND.check_idle(world, record)
    there, names = life.by_node([record]), body.get("machineNames") or []
    if unknown := sorted(set(names) - there.keys()):
        message = f"The machines {', '.join(unknown)} are not in agent pool {record.id.name}: {', '.join(there)}."
        raise bad_request(message, code="InvalidParameter", target="machineNames")
    with world.store.lock:
        life.remove(world, record, {there[name][1] for name in names})
        if now := world.store.get(record.id):
            now.state = "Updating"
            world.store.put(now)


def store(world: World, cluster: Record, record: Record, body: Body, existing: Record | None) -> None:
    """Checks and stores a cluster's pool. The caller starts the operation."""
    properties: Body = body.setdefault("properties", {})
    _keep(properties, existing.properties if existing else {})
    record.facts["vmSize"] = properties.get("vmSize") or _DEFAULT_SIZE
    sku = _sku(properties, record.id.name, cluster, world)
    _check_fixed(body, existing)
    _set_count(properties, existing)
    _fill(properties, cluster, sku)
    checks.check(properties, record.id.name, sku, scaled=existing is not None and checks.is_scaled(existing.properties))
    reservations.check(world, cluster, properties)
    _check_version(world, properties, cluster)
    _check_mode(world, properties, record.id, cluster)
    others = [pool for pool in of_cluster(world, cluster.id) if pool.id != record.id]
    subnets.check_pods(properties, cluster, others)
    record.facts |= subnets.placed(world, cluster, record, properties, others)
    quota.check(world, record.id, cluster.body["location"], sku, properties, surge=checks.surge(properties, existing))
    if existing is None:
        record.facts |= _facts(world, cluster)
    properties["provisioningState"] = "Updating" if existing else "Creating"
    record.body, record.error = body, None
    world.store.put(record)


def view_properties(record: Record) -> Body:
    """Returns the pool properties that ARM shows, inline or for the pool itself."""
    properties = {name: value for name, value in record.properties.items() if _UNSHOWN.get(name) != value}
    return properties | {
        "nodeImageVersion": nodes.image(properties["osSKU"], properties["orchestratorVersion"]).version,
        "currentOrchestratorVersion": record.facts.get("kubernetes", ""),
        "vmSize": record.facts.get("vmSize", properties["vmSize"]),
    }


def _facts(world: World, cluster: Record) -> dict[str, Any]:
    """Returns a new pool's address block, region, and whether its nodes will share one InfiniBand fabric."""
    taken = {int(record.facts["index"]) for record in world.store.within(cluster.id) if "index" in record.facts}
    index = next(number for number in range(len(taken) + 1) if number not in taken)
    one_fabric = features.registered(world, features.INFINIBAND)
    return {"index": index, "location": cluster.body["location"], "one_fabric": one_fabric, life.INSTANCES: []}


def _keep(properties: Body, old: Body) -> None:
    """Keeps omitted properties that updates cannot reset, such as immutable properties."""
    fixed = {path.split(".")[1] for path in schemas()[TYPE.lower()].immutable if path.count(".") == 1}
    for name in fixed | {"count", "gpuProfile", "mode", "osSKU", "orchestratorVersion"}:
        if name in old and properties.get(name) in (None, ""):
            properties[name] = old[name]


def _sku(properties: Body, name: str, cluster: Record, world: World) -> skus.VmSku:
    size: str
    location: str
    size, location = properties.get("vmSize") or _DEFAULT_SIZE, cluster.body["location"]
    sku = {known.lower(): sku for known, sku in skus.catalogue().items()}.get(size.lower())
    if sku is None:
        also = similar.hint(size, skus.catalogue())
        message = f"Virtual Machine size: '{size}' is not supported for subscription in location '{location}'.{also}"
        raise bad_request(message, target="properties.vmSize")
    if not world.subscription.offers(sku, location):
        offered = ", ".join(region for region in world.subscription.regions if world.subscription.offers(sku, region))
        message = (
            f"The VM size of AgentPoolProfile:{name} is not allowed in your subscription in location '{location}'. "
            f"It is offered in: {offered or 'no region of this subscription'}. "
            "For more details, please visit https://aka.ms/aks/quotas-skus-regions"
        )
        raise bad_request(message, target="properties.vmSize")
    properties["vmSize"] = sku.name
    return sku


def _check_fixed(body: Body, existing: Record | None) -> None:
    if existing is None:
        return
    changed = schemas()[TYPE.lower()].changed_immutables(existing.body, body)
    old = existing.properties
    taints = body["properties"].get("nodeTaints", [])
    if old.get("scaleSetPriority") == "Spot" and SPOT_TAINT not in taints:
        changed.append("properties.nodeTaints")
    if changed:
        raise _rules.forbidden_changes(changed)


def _set_count(properties: Body, existing: Record | None) -> None:
    """An autoscaled pool ignores the count in an update (Azure/AKS, release of 2019-10-28).

    A new autoscaled pool does not require a count (release of 2024-08-27). AKS's default is not documented (the
    reference has 1). The simulator uses minCount, which clients send. Without the autoscaler, a count is required.
    """
    if not checks.is_scaled(properties):
        if "count" not in properties:
            message = "Required parameter properties.count is missing (null)."
            raise bad_request(message, code="InvalidParameter", target="properties.count")
    elif existing is not None and checks.is_scaled(existing.properties):
        properties["count"] = existing.properties["count"]
    else:
        properties.setdefault("count", properties.get("minCount", 0))


def _fill(properties: Body, cluster: Record, sku: skus.VmSku) -> None:
    network = cluster.properties.get("networkProfile", {})
    overlay = network.get("networkPluginMode") == "overlay"
    azure = network.get("networkPlugin", "azure") == "azure"
    os_disks.fill(properties, sku)
    defaults: Body = {
        "mode": "User",
        "osType": "Linux",
        "osSKU": "Ubuntu",
        "kubeletDiskType": "OS",
        "maxPods": 250 if overlay else 30 if azure else 110,
        "scaleDownMode": "Delete",
        "scaleSetPriority": "Regular",
        "type": "VirtualMachineScaleSets",
        "orchestratorVersion": cluster.properties["kubernetesVersion"],
        "powerState": {"code": "Running"},
    }
    if sku.gpu_vendor == "nvidia":
        defaults["gpuProfile"] = {"driver": "Install"}
    for name, value in defaults.items():
        if properties.get(name) in (None, "", {}):  # the Azure CLI sends empty values, which AKS treats as unset
            properties[name] = value
    settings = properties.setdefault("upgradeSettings", {})
    if properties["scaleSetPriority"] != "Spot" and settings.setdefault("maxUnavailable", "0") == "0":
        settings.setdefault("maxSurge", "10%")
    if properties.get("scaleSetPriority") == "Spot":
        properties.setdefault("scaleSetEvictionPolicy", "Delete")
        properties.setdefault("spotMaxPrice", -1)
        _add_spot_marks(properties)


def _add_spot_marks(properties: Body) -> None:
    taints = properties.setdefault("nodeTaints", [])
    if SPOT_TAINT not in taints:
        taints.append(SPOT_TAINT)
    properties.setdefault("nodeLabels", {})[SPOT_LABEL] = "spot"


def _check_version(world: World, properties: Body, cluster: Record) -> None:
    """A pool's minor version can be at most three below the control plane's version, and not above it."""
    wanted = properties["orchestratorVersion"]
    if world.subscription.kubernetes(wanted) is None:
        raise bad_request(f"Version {wanted} {checks.VERSIONS_HELP}", code="AgentPoolK8sVersionNotSupported")
    control, own = (int(text.split(".")[1]) for text in (cluster.properties["kubernetesVersion"], wanted))
    if not control - 3 <= own <= control:
        message = (
            f"Node pool version {wanted} and control plane version {cluster.properties['kubernetesVersion']} are "
            "incompatible. The node pool's minor version cannot be above the control plane's, nor more than 3 below."
        )
        raise bad_request(message, code="NodePoolMcVersionIncompatible")


def _check_mode(world: World, properties: Body, resource: ResourceId, cluster: Record) -> None:
    if checks.is_system(properties):
        checks.check_system(properties, world.store.get(resource))
        return
    others = [pool for pool in of_cluster(world, cluster.id) if pool.id != resource]
    if others and not any(checks.is_system(pool.properties) for pool in others):
        raise bad_request("Must define at least one system pool.", code="BadRequest", target="properties.mode")
