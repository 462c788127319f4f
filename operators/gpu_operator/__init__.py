"""NVIDIA GPU Operator: driver, container toolkit and device plugin of GPU nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from components.operators import InstallContext, Installed, Operator
from config.data.scheduling import ANY_TAINT, GPU_RESOURCE, ON_SYSTEM_POOL
from config.problems.errors import Problem
from config.schema.operators import MONITORING, NVIDIA_NAMESPACE, Capability, DriverUpgrades, Installation
from config.schema.pools import PoolSettings
from operators._lib.drivers import change_hook, settings_of, upgrade_policy
from operators._lib.release import Values, release
from operators.gpu_operator.settings import GpuOperatorSettings, KernelModules, fabric_problems, sharing_problems

NAME = "gpu-operator"
WHOLE_GPUS = "whole-gpus"
"""The name of the device plugin's configuration for nodes without time slicing."""


class GpuOperator(Installed[GpuOperatorSettings]):
    """The release, which also creates the ClusterPolicy.

    If the stack has a NicClusterPolicy, the release waits until it is created, but not until it is ready. After the
    Network Operator has labelled a node, the driver's pod waits there for OFED. So images are pulled while OFED
    compiles.
    """

    def create(self, context: InstallContext, settings: GpuOperatorSettings) -> None:
        upgrades, ofed = context.settings.operators.driver_upgrades, context.installed.get(_OFED)
        after = ofed.followed if ofed else ()
        installed = release(
            NAME,
            context,
            parent=self,
            values=values(
                upgrades,
                rdma=bool(after),
                pools=context.settings.gpu_pools(),
                monitored=MONITORING in context.installed,
                modules=settings.kernel_module_type,
            ),
            user_values=settings.values,
            depends_on=after,
            hooks=change_hook("the GPU driver", driver_template_inputs, upgrades),
        )
        self.policies = [installed]


def driver_template_inputs(release: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the inputs of a release that affect the driver's DaemonSet, which has the chart's version in labels.

    gpu-operator v26.7.0: TransformDriver and applyCommonDaemonsetConfig (controllers/object_controls.go).
    """
    given = release.get("values") or {}
    parts = {name: given.get(name) for name in ("daemonsets", "gds", "gdrcopy", "hostPaths")}
    return {"version of the chart": release.get("version"), **settings_of(given.get("driver") or {}), **parts}


def values(
    upgrades: DriverUpgrades,
    *,
    rdma: bool,
    pools: Mapping[str, PoolSettings],
    monitored: bool = False,
    modules: KernelModules = "auto",
) -> Values:
    """Returns values of the chart for these pools.

    `rdma` loads nvidia-peermem, which waits for OFED on every node, so `rdma` must be off if no operator installs OFED.
    The settings reject pools with and without InfiniBand together, unless the user turns RDMA off. `monitored` adds the
    exporter of the operator's validation results.
    """
    # The chart's default is `auto`. An explicit value would show as a change of the driver.
    of_modules = {} if modules == "auto" else {"kernelModuleType": modules}
    return {
        "nfd": {"enabled": False},
        "operator": ON_SYSTEM_POOL,
        "daemonsets": {"tolerations": ANY_TAINT},
        "driver": {
            "enabled": True,
            "rdma": {"enabled": rdma},
            # With the default of 25%, nodes that are cordoned for other reasons could block all other upgrades.
            "upgradePolicy": {**upgrade_policy(upgrades), "maxUnavailable": "100%"},
            **of_modules,
        },
        "toolkit": {"enabled": True},
        **_slices(pools),
        "migManager": _mig_manager(pools),
        # These are for virtual machines on nodes, which AKS does not run (Azure/ai-infrastructure-on-azure).
        "vgpuDeviceManager": {"enabled": False},
        "vfioManager": {"enabled": False},
        "sandboxDevicePlugin": {"enabled": False},
        **({"nodeStatusExporter": {"enabled": True}} if monitored else {}),
    }


def _slices(pools: Mapping[str, PoolSettings]) -> Values:
    """Returns values with the device plugin's configurations. Node labels select one; the default has whole GPUs.

    Without a default, nodes without a label would use the only configuration if just one exists
    (NVIDIA/k8s-device-plugin, cmd/config-manager/main.go, fallback strategy single).
    """
    chosen = {name: pool.gpu_slices for pool in pools.values() if (name := pool.slicing_profile)}
    if not chosen:
        return {}
    data = {WHOLE_GPUS: "version: v1\n", **{name: _time_slicing(chosen[name]) for name in sorted(chosen)}}
    return {"devicePlugin": {"config": {"create": True, "name": "gpu-slices", "default": WHOLE_GPUS, "data": data}}}


def _time_slicing(slices: int) -> str:
    resources = f"    - name: {GPU_RESOURCE}\n      replicas: {slices}\n"
    return f"version: v1\nsharing:\n  timeSlicing:\n    resources:\n{resources}"


def _mig_manager(pools: Mapping[str, PoolSettings]) -> Values:
    """Returns values that let the MIG manager reboot a node if its GPUs cannot change their MIG mode otherwise.

    An A100 needs a reset to change the mode (NVIDIA/mig-parted, reconfigure_mig.go; NVIDIA's MIG User Guide). AKS's
    gpuInstanceProfile has no effect with driver None (AgentBaker, cse_main.sh).
    """
    if not any(pool.mig_profile for pool in pools.values()):
        return {"enabled": False}
    return {"enabled": True, "env": [{"name": "WITH_REBOOT", "value": "true"}]}


_OFED = "network-operator"


class _GpuOperator(Operator[GpuOperatorSettings]):
    name = NAME
    title = "the GPU Operator"
    summary = "GPU driver, toolkit, device plugin."
    namespace = NVIDIA_NAMESPACE
    settings = GpuOperatorSettings
    component = GpuOperator
    follows = (_OFED, MONITORING)
    needs: Mapping[Capability, str] = {"node labels": "selects nodes by the labels that Node Feature Discovery sets"}

    def provides(self, settings: GpuOperatorSettings) -> Mapping[Capability, str]:
        return {"GPUs": GPU_RESOURCE}

    def problems(self, installation: Installation) -> Iterator[Problem]:
        yield from fabric_problems(self, installation)
        yield from sharing_problems(self, installation)


OPERATOR = _GpuOperator()
