"""Computes the extended resources that a node's device plugins offer."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s.objects import Object, is_ready
from simulator.operators._loop import label, labelled
from simulator.operators.gpu_operator.gates import DEVICE_PLUGIN_APP, has_driver
from simulator.operators.gpu_operator.sharing import Sharing, SharingError, sharing
from simulator.operators.network_operator.daemonsets import OFED_POD_LABEL
from simulator.world.hardware import Hca, NodeHardware
from simulator.world.nodes import MELLANOX, nvidia_gpus

SRIOV_CONFIG = "/etc/pcidp/config.json"
SHARED_CONFIG = "/k8s-rdma-shared-dev-plugin/config.json"
LINK_TYPES = {"infiniband": "InfiniBand", "ether": "Ethernet"}

Configs = Callable[[Object, str], bytes | None]


class PluginConfigError(ValueError):
    """A configuration that the real device plugin rejects at its start."""


@dataclass(frozen=True)
class Pool:
    """A resource in a plugin's configuration. `shared` is how many pods share a device; 0 means no sharing."""

    resource: str
    selectors: tuple[Mapping[str, Any], ...]
    shared: int = 0

    def takes(self, hca: Hca) -> bool:
        return any(_selected(selector, hca) for selector in self.selectors)


def extended_resources(
    node: Object, pods_on_node: Sequence[Object], hardware: NodeHardware, configs: Configs
) -> dict[str, int]:
    """Returns the node's extended resources. `configs` returns a pod's mounted file, or None.

    Skips a configuration that its plugin rejects, because the plugin's pod reports the error.
    """
    pods = [pod for pod in pods_on_node if is_ready(pod)]
    resources: dict[str, int] = {}
    for pod in labelled(pods, "app", DEVICE_PLUGIN_APP):
        if has_driver(node, pods):
            with contextlib.suppress(SharingError):  # the pod's gate reports the error
                shared = _sharing(node, pod, configs, hardware)
                resources[shared.resource] = shared.shares * sum(gpu.healthy for gpu in nvidia_gpus(hardware))
    has_ofed = bool(labelled(pods, OFED_POD_LABEL))
    hcas = [hca for hca in hardware.hcas if _offered(hca, has_ofed=has_ofed)]
    for pod in pods:
        try:
            resources |= _count(_pools(pod, configs), hcas)
        except PluginConfigError:
            continue  # the pod's gate reports the error, and the pod becomes unready
    return resources


def sriov_pools(text: bytes | None) -> list[Pool]:
    """Returns the pools in SR-IOV's config.json. Raises PluginConfigError."""
    return [
        Pool(f"{entry.get('resourcePrefix', 'intel.com')}/{entry['resourceName']}", _selectors(entry))
        for entry in _entries(text, "resourceList")
    ]


def shared_pools(text: bytes | None) -> list[Pool]:
    """Returns the pools in the RDMA shared plugin's config.json. Raises PluginConfigError."""
    return [
        Pool(
            f"{entry.get('resourcePrefix', 'rdma')}/{entry['resourceName']}",
            _selectors(entry, devices="deviceIDs"),
            shared=int(entry.get("rdmaHcaMax", 0)),
        )
        for entry in _entries(text, "configList")
    ]


def _pools(pod: Object, configs: Configs) -> list[Pool]:
    if label(pod, "app") == "sriovdp":
        return sriov_pools(configs(pod, SRIOV_CONFIG))
    if label(pod, "app") == "rdma-shared-dp":
        return shared_pools(configs(pod, SHARED_CONFIG))
    return []


def _count(pools: Sequence[Pool], hcas: Sequence[Hca]) -> dict[str, int]:
    """Counts devices by resource. The first pool that selects a device takes it, but shared pools do not take any."""
    counts: dict[str, int] = {}
    free = list(hcas)
    for pool in pools:
        taken = [hca for hca in free if pool.takes(hca)]
        if pool.shared:
            counts[pool.resource] = pool.shared if taken else 0
        else:
            counts[pool.resource] = len(taken)
            free = [hca for hca in free if hca not in taken]
    return counts


def _offered(hca: Hca, *, has_ofed: bool) -> bool:
    return hca.state == "ACTIVE" and (has_ofed or hca.link_layer != "InfiniBand")


def _entries(text: bytes | None, key: str) -> list[Object]:
    try:
        entries = [dict(entry) for entry in json.loads(text or b"")[key]]
    except (ValueError, KeyError, TypeError) as error:
        raise PluginConfigError(f"config.json must be JSON with a list {key!r}: {error!r}") from error
    for entry in entries:
        if not entry.get("resourceName"):
            raise PluginConfigError(f"an entry of {key} has no resourceName")
        most = entry.get("rdmaHcaMax", 0)
        if not isinstance(most, int) or most < 0:
            raise PluginConfigError(f"rdmaHcaMax of {entry['resourceName']} is not a number of devices: {most!r}")
    return entries


def _selectors(entry: Mapping[str, Any], devices: str = "devices") -> tuple[Mapping[str, Any], ...]:
    given = entry.get("selectors", {})
    known = {"vendors", devices, "linkTypes", "isRdma", "pciAddresses", "drivers"}
    selectors = []
    for selector in given if isinstance(given, list) else [given]:
        if not isinstance(selector, dict) or not all(_is_choice(value) for value in selector.values()):
            raise PluginConfigError(f"selectors of {entry['resourceName']} are not lists of text: {selector!r}")
        if unknown := set(selector) - known:
            names = ", ".join(sorted(unknown))
            raise PluginConfigError(f"selectors {names} of {entry['resourceName']} are not simulated")
        selectors.append({"devices" if key == devices else key: value for key, value in selector.items()})
    return tuple(selectors)


def _is_choice(value: Any) -> bool:
    return isinstance(value, bool | None) or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def _selected(selector: Mapping[str, Any], hca: Hca) -> bool:
    """Empty lists match all HCAs. All HCAs support RDMA and use the driver mlx5_core."""
    facts = {"vendors": MELLANOX, "devices": hca.device, "pciAddresses": hca.pci, "drivers": "mlx5_core"}
    if any(selector.get(key) and fact not in selector[key] for key, fact in facts.items()):
        return False
    links = selector.get("linkTypes") or []
    return not links or hca.link_layer in {LINK_TYPES.get(link.lower()) for link in links}


def _sharing(node: Object, pod: Object, configs: Configs, hardware: NodeHardware) -> Sharing:
    env = {entry["name"]: entry.get("value", "") for entry in pod["spec"]["containers"][0].get("env", [])}
    product = next((gpu.product for gpu in nvidia_gpus(hardware)), "")
    return sharing(node, env, lambda path: configs(pod, path), product)
