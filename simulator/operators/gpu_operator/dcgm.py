"""Emulates NVIDIA's DCGM exporter, and builds its Service and ServiceMonitor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from k8s.objects import Object
from simulator.kubelet.programs import Holder
from simulator.operators._metrics import Family, exposition
from simulator.world.hardware import Gpu, NodeHardware
from simulator.world.nodes import nvidia_gpus

NAME = "nvidia-dcgm-exporter"
PORT = 9400
_BUSY_PERCENT, _USED_SHARE = 98, 0.9
_MIB_PER_GB = 10**9 / 2**20


def text(hardware: NodeHardware, holders: Sequence[Holder]) -> str:
    """Returns the metrics. A GPU that fell off the bus has only the metric of the last Xid.

    A GPU is busy if its pod is running with a restartPolicy other than Always. So notebooks and servers are idle.
    """
    util = Family("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).")
    used = Family("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).")
    free = Family("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).")
    xid = Family("DCGM_FI_DEV_XID_ERRORS", "Value of the last XID error encountered.")
    failed = Family("DCGM_FI_DEV_ROW_REMAP_FAILURE", "Whether remapping of rows has failed.")
    for gpu in nvidia_gpus(hardware):
        holder = next((each.pod for each in holders if gpu.index in each.gpus), None)
        labels = _labels(gpu, hardware.node, holder)
        xid.samples.append((labels, gpu.xids[-1] if gpu.xids else 0))
        if gpu.healthy:
            busy = holder is not None and _computes(holder)
            total = gpu.memory_gb * _MIB_PER_GB
            util.samples.append((labels, _BUSY_PERCENT if busy else 0))
            used.samples.append((labels, round(total * _USED_SHARE) if busy else 0))
            free.samples.append((labels, round(total * (1 - _USED_SHARE if busy else 1))))
            failed.samples.append((labels, int(gpu.remap_failed)))
    return exposition([util, used, free, xid, failed])


def _computes(pod: Object) -> bool:
    return bool(pod.get("status", {}).get("phase") == "Running" and pod["spec"].get("restartPolicy") != "Always")


def _labels(gpu: Gpu, node: str, pod: Object | None) -> dict[str, str]:
    own = {
        "gpu": str(gpu.index),
        "UUID": gpu.uuid,
        "pci_bus_id": gpu.pci,
        "device": f"nvidia{gpu.index}",
        "modelName": gpu.product,
        "Hostname": node,
    }
    if pod is None:
        return own
    container = next((each["name"] for each in pod["spec"]["containers"] if _has_gpus(each)), "")
    return {**own, "container": container, "namespace": pod["metadata"]["namespace"], "pod": pod["metadata"]["name"]}


def _has_gpus(container: Object) -> bool:
    limits = container.get("resources", {}).get("limits", {})
    return any(name.startswith("nvidia.com/gpu") for name in limits)


def found_by(policy: Mapping[str, Any], namespace: str) -> list[Object]:
    """Returns the exporters' Service and ServiceMonitor (the operator's assets/state-dcgm-exporter)."""
    labels = {"app": NAME}
    monitor = policy["dcgmExporter"].get("serviceMonitor", {})
    endpoint = {"port": "gpu-metrics", "path": "/metrics", "interval": monitor.get("interval", "15s")}
    return [
        _object("v1", "Service", labels, namespace, _service_spec(labels)),
        _object(
            "monitoring.coreos.com/v1",
            "ServiceMonitor",
            {**labels, **monitor.get("additionalLabels", {})},
            namespace,
            {
                "jobLabel": "app",
                "namespaceSelector": {"matchNames": [namespace]},
                "selector": {"matchLabels": labels},
                "endpoints": [{**endpoint, "honorLabels": bool(monitor.get("honorLabels", False))}],
            },
        ),
    ]


def _service_spec(labels: Mapping[str, str]) -> Object:
    port = {"name": "gpu-metrics", "port": PORT, "targetPort": PORT, "protocol": "TCP"}
    return {"selector": dict(labels), "ports": [port]}


def _object(version: str, kind: str, labels: Mapping[str, str], namespace: str, spec: Object) -> Object:
    metadata = {"name": NAME, "namespace": namespace, "labels": dict(labels)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
