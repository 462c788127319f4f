from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from components.preflight.existing_system_pool import system_pool_refusal
from config.schema.cluster import SystemPool
from tests.support.arm import CLUSTER as CLUSTER_PATH
from tests.support.arm import Arm, pool_path
from tests.support.azure_plugin import CLUSTER, AzurePlugin, cluster_inputs, failure

D4, D8 = "Standard_D4ads_v5", "Standard_D8ads_v5"
OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--mode": ("mode", str),
    "--node-vm-size": ("vmSize", str),
    "--node-count": ("count", int),
    "--os-sku": ("osSKU", str),
    "--node-osdisk-type": ("osDiskType", str),
    "--node-osdisk-size": ("osDiskSizeGB", int),
    "--node-taints": ("nodeTaints", lambda text: text.split(",")),
}


def run(arm: Arm, command: str) -> None:
    """All options have a value."""
    _, _, _, verb, *rest = shlex.split(command)
    options = dict(zip(rest[::2], rest[1::2], strict=True))
    assert (options.pop("-g"), options.pop("--cluster-name")) == ("rg", "aks")
    pool = pool_path(options.pop("--name"))
    properties: dict[str, Any] = {OPTIONS[name][0]: OPTIONS[name][1](text) for name, text in options.items()}
    answer = arm.put(pool, {"properties": properties}) if verb == "add" else arm.call("DELETE", pool)
    assert answer.status_code in (201, 202), answer.text
    arm.done()


def test_the_suggested_commands_create_the_wanted_pool(plugin: AzurePlugin, arm: Arm) -> None:
    wanted = SystemPool(vm_sku=D8, count=2, taint=True)
    _, cluster = plugin.stack()
    pool = {"name": "system", "mode": "System", "count": 2, "vmSize": D8, "osDiskSizeGB": 128, "osDiskType": "Managed"}
    inputs = cluster_inputs(agentPoolProfiles=[pool | {"nodeTaints": ["CriticalAddonsOnly=true:NoSchedule"]}])
    with pytest.raises(grpc.RpcError) as refused:
        plugin.update(CLUSTER, CLUSTER_PATH, cluster, inputs)
    assert "PropertyChangeNotAllowed" in failure(refused), "the update fails without the check"
    suggestion = system_pool_refusal(wanted, D4, "dev", "-g rg --cluster-name aks")
    for line in suggestion.splitlines():
        if line.strip().startswith("az "):
            run(arm, line.strip())
    assert arm.get(pool_path("system"))["properties"]["vmSize"] == D8
    assert arm.call("GET", pool_path("systemnext")).status_code == 404
    plugin.update(CLUSTER, CLUSTER_PATH, cluster, inputs)
    assert len(arm.node_names()) == 2
