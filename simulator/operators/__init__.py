"""The operators of the charts that a stack installs. Some operators are real. All others are emulated.

`PROGRAMS` maps container images to programs and to readiness conditions of pods.
"""

from __future__ import annotations

from simulator.kubelet.programs import Controller, ImageProgram, OneShot, Page
from simulator.operators import _real, autopilot, crds, nfs_subdir
from simulator.operators.gpu_operator import controller as gpu_operator
from simulator.operators.gpu_operator import dcgm, gates, gfd, mig
from simulator.operators.network_operator import controller as network_operator
from simulator.operators.network_operator import gates as network_gates

_GPU_IMAGE = "gpu-operator"
_NETWORK_IMAGE = "network-operator"
_PLUGIN_IMAGE = "k8s-device-plugin"

REAL = _real.find()

# Programs with the same image differ in `command`. If several match, the first runs.
PROGRAMS: tuple[ImageProgram, ...] = (
    *(program for operator in REAL for program in operator.programs),
    ImageProgram(_NETWORK_IMAGE, OneShot(crds.apply_crds("network-operator")), "/apply-crds"),
    ImageProgram(
        _NETWORK_IMAGE,
        Controller(network_operator.run),
        "/manager",
        page=Page(lambda _: network_operator.METRICS_PORT, network_operator.text),
    ),
    ImageProgram("sriov-network-device-plugin", gate=network_gates.sriov_gate),
    ImageProgram("k8s-rdma-shared-dev-plugin", gate=network_gates.shared_gate),
    ImageProgram(_GPU_IMAGE, OneShot(crds.apply_crds("gpu-operator")), "/usr/bin/manage-crds"),
    ImageProgram(_GPU_IMAGE, gate=gates.validator_gate, command="nvidia-validator"),
    ImageProgram(_GPU_IMAGE, Controller(gpu_operator.run), "gpu-operator --leader-elect"),
    ImageProgram("driver", gate=gates.driver_gate, command="nvidia-driver init", leaves=gates.DRIVER_ROOT_FILE),
    ImageProgram(network_gates.OFED_IMAGE, leaves=network_gates.OFED_READY_FILE),
    ImageProgram("container-toolkit", gate=gates.toolkit_gate),
    ImageProgram(_PLUGIN_IMAGE, gate=gates.device_plugin_gate, command="nvidia-device-plugin"),
    ImageProgram(_PLUGIN_IMAGE, Controller(gfd.run), "gpu-feature-discovery", gate=gates.runtime_gate),
    ImageProgram("dcgm", gate=gates.runtime_gate),
    ImageProgram("dcgm-exporter", gate=gates.runtime_gate, page=Page(lambda _: dcgm.PORT, dcgm.text)),
    ImageProgram(
        autopilot.IMAGE,
        Controller(autopilot.run),
        gate=autopilot.gate,
        page=Page(lambda _: autopilot.METRICS_PORT, autopilot.text),
    ),
    ImageProgram("k8s-mig-manager", Controller(mig.run), gate=gates.runtime_gate),
    ImageProgram("nfs-subdir-external-provisioner", Controller(nfs_subdir.run)),
)

__all__ = ["PROGRAMS", "REAL"]
