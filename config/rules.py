"""Rules that hold between settings, or that types cannot say. Each yields the problems that it finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from config.base import at
from config.chart_values import ValueProblem, value_problems
from config.errors import Path, Problem, remove_command, set_command
from config.models import Operator, StackFile
from config.near import near
from config.pools import gpu_sizes, pool_problems
from config.skus import catalogue
from config.translate import unknown_key
from config.versions import versions

SYSTEM_POOL_VCPUS = 4
"""Least vCPUs of a system node: AKS asks for 4 to run its own add-ons, and the operators' controllers come on top."""
OPERATOR_CHARTS = {
    "nodeFeatureDiscovery": "node-feature-discovery",
    "networkOperator": "network-operator",
    "gpuOperator": "gpu-operator",
    "volcano": "volcano",
    "blobCsiDriver": "blob-csi-driver",
}

TYPE_WORDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "list": "a list",
    "map": "a map",
}
"""What the types in lists of chart keys are called in messages."""


def problems(stack: StackFile) -> Iterator[Problem]:
    """All that is wrong between the settings of a stack, workloads aside."""
    for rule in RULES:
        yield from rule(stack)


def operator(stack: StackFile, key: str) -> Operator:
    """One operator's settings by its key in stack files."""
    settings: Operator = at(stack.operators, key)
    return settings


def installs(stack: StackFile, key: str) -> bool:
    """Whether an operator's chart is asked for. That of the blob driver has AKS's add-on beside it."""
    return operator(stack, key).enabled and (key != "blobCsiDriver" or stack.storage.needs("chart"))


def chart_value(stack: StackFile, key: str, *path: str) -> object:
    """A value that the user sets for an operator's chart; None without it."""
    found: object = operator(stack, key).values
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _kubernetes_version(stack: StackFile) -> Iterator[Problem]:
    known = versions().kubernetes
    version = stack.cluster.kubernetes_version
    match = re.fullmatch(r"(\d+\.\d+)(?:\.(\d+))?", version)
    newest = known.newest.get(match[1]) if match else None
    if not match:
        fault = "not a version"
    elif newest is None:
        fault = "which AKS does not offer to new clusters"
    elif match[2] and int(match[2]) > int(newest.rpartition(".")[2]):
        fault = f"newer than {newest}, the newest patch in config/versions.yaml"
    else:
        return
    path = ("cluster", "kubernetesVersion")
    minors, patches = ", ".join(known.newest), ", ".join(known.newest.values())
    allowed = f"{minors}, or with a patch that `az aks get-versions` lists, up to {patches}"
    fix = set_command(path, match[1] if match and newest else known.default)
    yield Problem(path, f"is {version!r}, {fault}", allowed, fix)


def _pools(stack: StackFile) -> Iterator[Problem]:
    if "pools" not in stack.model_fields_set:
        yield from _default_pool(stack)
        return
    usual = type(stack).model_fields["node_count"].default
    for key, given in (("vmSku", stack.vm_sku is not None), ("nodeCount", stack.node_count != usual)):
        if given:
            what = "sizes the default pool, which a stack with pools does not have"
            yield Problem((key,), what, "nothing beside pools", remove_command((key,)))
    for name, pool in stack.pools.items():
        yield from pool_problems(name, pool, ("pools", name))


def _default_pool(stack: StackFile) -> Iterator[Problem]:
    if stack.vm_sku is None:
        path, usable = ("vmSku",), gpu_sizes()
        what, fix = "is not set, and pools are not either", set_command(path, usable[0])
        yield Problem(path, what, ", ".join(usable), fix, lacking=("pools",))


def _system_pool(stack: StackFile) -> Iterator[Problem]:
    path = ("cluster", "systemPool", "vmSku")
    name = stack.cluster.system_pool.vm_sku
    usable = [size.name for size in catalogue().values() if not size.gpus and size.vcpus >= SYSTEM_POOL_VCPUS]
    if name in usable:
        return
    size = catalogue().get(name)
    if size is None:
        likely = near(name, usable) or usable
        what = f"is {name!r}, a VM size that this program does not know"
    else:
        likely = usable
        fault = f"has {size.vcpus} vCPUs; system nodes need {SYSTEM_POOL_VCPUS}" if not size.gpus else "has GPUs"
        what = f"is {name}, which {fault}"
    yield Problem(path, what, ", ".join(usable), set_command(path, likely[0]))


def _login(stack: StackFile) -> Iterator[Problem]:
    cluster = stack.cluster
    if cluster.entra:
        return
    if not cluster.local_accounts:
        path = ("cluster", "localAccounts")
        what = "is false and cluster.entra is false too, so nobody could log in to the cluster"
        yield Problem(path, what, "either of the two, or both", set_command(path, True))
    for path, given in (
        (("cluster", "adminGroupObjectIds"), cluster.admin_group_object_ids),
        (("cluster", "deployerObjectId"), cluster.deployer_object_id),
    ):
        if given:
            what = "names Entra identities, but cluster.entra is false"
            yield Problem(path, what, "nothing, or cluster.entra true", remove_command(path))


def _node_labels(stack: StackFile) -> Iterator[Problem]:
    """The operators place their DaemonSets by the labels that Node Feature Discovery gives."""
    if stack.operators.node_feature_discovery.enabled:
        return
    path = ("operators", "nodeFeatureDiscovery", "enabled")
    for key in ("networkOperator", "gpuOperator"):
        if operator(stack, key).enabled:
            what = f"is false, but operators.{key} finds its nodes by its labels"
            yield Problem(path, what, f"true, or operators.{key}.enabled false", set_command(path, True))


def _one_node_feature_discovery(stack: StackFile) -> Iterator[Problem]:
    """Two would fight over the labels of the nodes."""
    for key in ("networkOperator", "gpuOperator"):
        if chart_value(stack, key, "nfd", "enabled") is True:
            path = ("operators", key, "values", "nfd", "enabled")
            what = "is true, but a cluster has one Node Feature Discovery, that of operators.nodeFeatureDiscovery"
            yield Problem(path, what, "false, or not set", remove_command(path))


def _one_kind_of_fabric(stack: StackFile) -> Iterator[Problem]:
    """With driver.rdma, the GPU driver waits for OFED on all nodes with a function of vendor 15b3 (k8s-driver-manager).

    Accelerated networking gives each VM such a function, of Ethernet, and OFED comes to nodes with InfiniBand only: a
    node without would wait for ever. The ClusterPolicy has one driver for all nodes.
    """
    sizes = {key: pool.sku for key, pool in stack.gpu_pools().items()}
    without = [key for key, size in sizes.items() if not size.infiniband]
    mixed = without and any(size.infiniband for size in sizes.values())
    enabled = all(operator(stack, key).enabled for key in ("networkOperator", "gpuOperator"))
    rdma = ("driver", "rdma", "enabled")
    if mixed and enabled and chart_value(stack, "gpuOperator", *rdma) is not False:
        path = ("operators", "gpuOperator", "values", *rdma)
        what = (
            f"is on, but pool {', '.join(without)} has no InfiniBand, beside pools that do: its GPU driver would wait "
            "for OFED for ever"
        )
        allowed = "false, which leaves GPUDirect RDMA to DMA-BUF; or stacks of their own for pools without InfiniBand"
        yield Problem(path, what, allowed, set_command(path, False))


def _scratch(stack: StackFile) -> Iterator[Problem]:
    """A pool that asks for scratch needs what makes it; where a VM size merely has the disks, it may be off."""
    if stack.operators.local_nvme_scratch.enabled:
        return
    path = ("operators", "localNvmeScratch", "enabled")
    for key, pool in stack.pools.items():
        if pool.local_nvme_scratch:
            what = f"is false, but pools.{key}.localNvmeScratch is true, and nothing else makes it"
            yield Problem(path, what, f"true, or a pool {key} without localNvmeScratch", set_command(path, True))


def _blob_driver(stack: StackFile) -> Iterator[Problem]:
    """The driver comes once: as AKS's add-on, which takes no values and has no switch here, or as its chart."""
    chart, driver = stack.operators.blob_csi_driver, stack.storage.driver
    if driver == "addon" and chart != Operator():
        path: Path = ("operators", "blobCsiDriver")
        what = "is for the driver's chart, but storage.driver is addon"
        yield Problem(path, what, "nothing, or storage.driver chart", remove_command(path))
    if driver == "chart" and stack.storage.containers and not chart.enabled:
        path = ("operators", "blobCsiDriver", "enabled")
        what = "is false, but storage.containers are mounted by it"
        yield Problem(path, what, "true, or storage.driver addon", set_command(path, True))


def _chart_values(stack: StackFile) -> Iterator[Problem]:
    for key, chart in OPERATOR_CHARTS.items():
        path = ("operators", key, "values")
        for found in value_problems(chart, operator(stack, key).values):
            yield _value_problem(chart, found, (*path, *found.path))


def _value_problem(chart: str, found: ValueProblem, path: Path) -> Problem:
    version = versions().charts[chart].version
    if found.expected:
        what = f"has the wrong type for chart {chart} {version}"
        return Problem(path, what, TYPE_WORDS[found.expected], remove_command(path), shows_value=False)
    what = f"is a key that chart {chart} {version} does not have"
    return unknown_key(path, found.known, found.value, found.beside, what)


RULES: tuple[Callable[[StackFile], Iterator[Problem]], ...] = (
    _kubernetes_version,
    _pools,
    _system_pool,
    _login,
    _node_labels,
    _one_node_feature_discovery,
    _one_kind_of_fabric,
    _scratch,
    _blob_driver,
    _chart_values,
)
