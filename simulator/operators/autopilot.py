"""Emulates IBM's Autopilot. Its Go module is not available, and its checks are CUDA and DCGM programs.

Emulates the readiness, the errors for wrong flags, the checks, the node's label, storage claims and GPU metrics. In the
check `ping`, nodes always reach each other. Source: IBM/autopilot, autopilot-v2.1.3, pkg/cmd/main.go and
pkg/healthcheck/healthcheck.go.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence

from config.data import skus
from config.data.scheduling import AUTOPILOT_LABEL, NVIDIA_RUNTIME
from k8s.objects import Object
from simulator.kube.client import ApiError
from simulator.kubelet.programs import Holder, PodContext
from simulator.operators._loop import labelled, set_labels
from simulator.operators._metrics import Family, exposition
from simulator.operators.gpu_operator import gates
from simulator.world.hardware import NodeHardware
from simulator.world.nodes import hardware_of, has_host_driver, nvidia_gpus
from simulator.world.performance import numbers

IMAGE, METRICS_PORT = "autopilot/autopilot", 8081
HOUR_S = 10.0
"""The real seconds for each hour between checks."""
STATUS = "Autopilot: emulated labels, claims and GPU metrics; an hour between checks lasts 10 s"
_FLAG = re.compile(r"--?(w|invasive-check-timer)[ =](\S+)")
_CLAIM_S = 90.0
"""The time limit to bind a claim (pkg/healthcheck/functions.go, ListPVC)."""


def gate(ctx: PodContext) -> str | None:
    """Waits for nvidia-smi, like the init container. The pod has it if NVIDIA's runtime is its class or the default.

    With AKS's driver, this runtime is the default (AgentBaker, pkg/agent/baker.go, containerd's default_runtime_name).
    """
    if reason := gates.runtime_gate(ctx):
        return reason
    named = str(ctx.pod["spec"].get("runtimeClassName", "")).startswith(NVIDIA_RUNTIME)
    return None if named or _is_default(ctx) else "waiting for nvidia device plug-in to be setup"


def _is_default(ctx: PodContext) -> bool:
    wanted = {"name": "NVIDIA_RUNTIME_SET_AS_DEFAULT", "value": "true"}
    toolkits = labelled(ctx.pods_on_node(), "app", gates.TOOLKIT_APP)
    set_so = any(wanted in each.get("env", []) for pod in toolkits for each in pod["spec"]["containers"])
    return set_so or has_host_driver(ctx.node)


def run(ctx: PodContext, stop: threading.Event) -> None:
    """Runs rounds of checks. Raises ValueError for errors that crash and restart the real Autopilot."""
    repeat, invasive = intervals(ctx.argv())
    while not stop.is_set():
        _round(ctx, stop)
        if not repeat or not invasive:
            msg = "panic: non-positive interval for NewTicker"
            raise ValueError(msg)
        stop.wait(repeat * HOUR_S)


def intervals(argv: Sequence[str]) -> tuple[int, int]:
    """Returns the hours between checks and between invasive checks. Raises ValueError unless they are integers."""
    given = {"w": "24", "invasive-check-timer": "4", **dict(_FLAG.findall(" ".join(argv)))}
    for name, text in given.items():
        if not text.isdecimal():
            msg = f'invalid value "{text}" for flag -{name}: parse error'
            raise ValueError(msg)
    return int(given["w"]), int(given["invasive-check-timer"])


def _round(ctx: PodContext, stop: threading.Event) -> None:
    env = ctx.env()
    checks = env.get("PERIODIC_CHECKS", "").split(",")
    if "ping" in checks and not ctx.pod["metadata"].get("annotations"):
        ctx.log("TypeError: 'NoneType' object is not subscriptable")  # network/ping-entrypoint.py, check_local_ifaces
        checks = checks[: checks.index("ping")]  # the error ends the round, but is not a failed check
    failed = [f"{name} {where}" for name, where in failures(hardware_of(ctx.node)) if name in checks]
    if "pvc" in checks and not _claim_is_bound(ctx, env.get("PVC_TEST_STORAGE_CLASS", ""), stop):
        failed.append("pvc")
    if stop.is_set():
        return
    node = ctx.kube.get("v1", "Node", ctx.node["metadata"]["name"])
    if set_labels(ctx.kube, node, {AUTOPILOT_LABEL: "WARN" if failed else "PASS"}):
        ctx.log(f"Errors after running periodic health checks: {', '.join(failed) or 'none'}")


def failures(hardware: NodeHardware) -> Iterator[tuple[str, str]]:
    """Yields failed checks and their GPUs. Yields nothing if a GPU is lost, because after an error of nvidia-smi,
    Autopilot skips all GPU checks (utils/briefings.sh, "cannot be run").
    """
    gpus = nvidia_gpus(hardware)
    if all(gpu.healthy for gpu in gpus):
        yield from (("remapped", str(gpu.index)) for gpu in gpus if gpu.remap_pending)
        yield from (("gpupower", str(gpu.index)) for gpu in gpus if gpu.slowed)


def _claim_is_bound(ctx: PodContext, storage_class: str, stop: threading.Event) -> bool:
    name, namespace = ctx.pod["metadata"]["name"], ctx.pod["metadata"]["namespace"]
    claim = ("v1", "PersistentVolumeClaim", name, namespace)
    spec = {
        "storageClassName": storage_class,
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "100Mi"}},
    }
    metadata = {"name": name, "namespace": namespace}
    try:
        ctx.kube.create({"apiVersion": "v1", "kind": claim[1], "metadata": metadata, "spec": spec})
    except ApiError as error:  # if the claim exists or is denied, Autopilot reports no failure
        ctx.log(f"[PVC Create] Failed. ABORT. {error}")
        return True
    until = time.monotonic() + _CLAIM_S
    while not (bound := _is_bound(ctx.kube.get(*claim))) and time.monotonic() < until and not stop.wait(1):
        pass
    ctx.kube.delete(*claim)
    return bound or stop.is_set()


def _is_bound(claim: Object) -> bool:
    return bool(claim.get("status", {}).get("phase") == "Bound")


def text(hardware: NodeHardware, _: Sequence[Holder]) -> str:
    """Returns the measurements of the last checks, without the measurements of DCGM."""
    found = Family("autopilot_health_checks", "Summary of the health checks measurements on compute nodes.")
    bandwidth = (skus.sku(hardware.sku).health.gpu_host_gbs or 0) * float(numbers()["health_over_limit"])
    for gpu in nvidia_gpus(hardware):
        measured = {"remapped": float(gpu.remap_pending), "power-slowdown": float(gpu.slowed)}
        measured |= {"pciebw": bandwidth} if bandwidth else {}
        own = {"node": hardware.node, "gpumodel": gpu.product, "deviceid": str(gpu.index)}
        found.samples.extend(({"health": check, **own}, value) for check, value in measured.items())
    return exposition([found])
