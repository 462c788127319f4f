from __future__ import annotations

import threading
from typing import Any

import pytest

from config.data import skus
from config.data.scheduling import AUTOPILOT_LABEL
from operators.autopilot import ANNOTATIONS
from simulator.operators import autopilot
from simulator.operators.gpu_operator import gates
from simulator.world.faults import FaultKind, FaultStore, new_fault
from simulator.world.hardware import node_hardware
from tests.support.fake_kube import Context, FakeKube, node, pod
from tests.support.sizes import H100

DRIVER, TOOLKIT = pod("driver", {"app": gates.DRIVER_APP}), pod("toolkit", {"app": gates.TOOLKIT_APP})
CHECKS = "pciebw,remapped,ping,gpupower"


def container(*, repeat: str = "1", invasive: str = "4") -> dict[str, Any]:
    command = f"/usr/local/bin/autopilot --port 3333 --bw 4 --w {repeat} --invasive-check-timer {invasive}\n"
    return {"name": "autopilot", "command": ["sh", "-c", command]}


def on_node(
    *,
    runtime: str = "nvidia",
    checks: str = CHECKS,
    storage_class: str = "",
    annotations: dict[str, str] | None = ANNOTATIONS,
    **flags: str,
) -> Context:
    where = node("n", H100)
    made = pod("autopilot-1", {"app": "autopilot"})
    made["metadata"] |= {"namespace": "autopilot", "annotations": annotations or {}}
    made["spec"]["runtimeClassName"] = runtime
    environment = {"PERIODIC_CHECKS": checks, "PVC_TEST_STORAGE_CLASS": storage_class}
    kube = FakeKube(where)
    return Context(kube, where, container(**flags), environment=environment, neighbours=[DRIVER, TOOLKIT], pod=made)


def label(ctx: Context) -> str | None:
    stop = threading.Event()
    real = ctx.kube_.patch

    def patched(*given: Any, **more: Any) -> Any:
        stop.set()  # after its first verdict
        return real(*given, **more)

    ctx.kube_.patch = patched  # type: ignore[method-assign]
    autopilot.run(ctx.as_pod_context(), stop)
    found: str | None = ctx.kube_.objects[("Node", "", "n")]["metadata"].get("labels", {}).get(AUTOPILOT_LABEL)
    return found


def fault(kind: FaultKind) -> None:
    FaultStore().fault(new_fault(kind, "n", "3"))


def test_waits_for_driver_toolkit_and_runtime() -> None:
    assert autopilot.gate(on_node().as_pod_context()) is None
    bare = on_node()
    bare.neighbours = [DRIVER]
    assert "container stack" in (autopilot.gate(bare.as_pod_context()) or "")
    assert "device plug-in" in (autopilot.gate(on_node(runtime="").as_pod_context()) or "")


def test_needs_no_runtime_class_if_the_runtime_is_the_default() -> None:
    toolkit = pod("toolkit", {"app": gates.TOOLKIT_APP})
    variable = {"name": "NVIDIA_RUNTIME_SET_AS_DEFAULT", "value": "true"}
    toolkit["spec"]["containers"] = [{"name": "ctr", "env": [variable]}]
    ctx = on_node(runtime="")
    ctx.neighbours = [DRIVER, toolkit]
    assert autopilot.gate(ctx.as_pod_context()) is None


def test_ping_ends_the_round_without_an_annotation() -> None:
    """Its script reads Multus's annotation, and fails for a pod without annotations."""
    fault(FaultKind.THERMAL)
    assert label(on_node(annotations=None)) == "PASS"
    assert label(on_node(annotations=None, checks="gpupower,ping")) == "WARN"


@pytest.mark.parametrize("kind", [FaultKind.ECC, FaultKind.THERMAL])
def test_a_degraded_gpu_is_a_warning(kind: FaultKind) -> None:
    fault(kind)
    assert label(on_node()) == "WARN"


def test_a_disabled_check_finds_nothing() -> None:
    fault(FaultKind.THERMAL)
    assert label(on_node(checks="remapped")) == "PASS"


def test_a_lost_gpu_passes_because_the_checks_are_skipped() -> None:
    fault(FaultKind.ECC)
    FaultStore().fault(new_fault(FaultKind.GPU, "n", "5"))
    assert label(on_node()) == "PASS"


def test_an_unbound_claim_is_a_warning_and_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autopilot, "_CLAIM_S", 0.0)
    ctx = on_node(checks="pvc", storage_class="shared")
    assert label(ctx) == "WARN"
    assert "create PersistentVolumeClaim autopilot-1" in ctx.kube_.writes
    assert not [key for key in ctx.kube_.objects if key[0] == "PersistentVolumeClaim"]


@pytest.mark.parametrize(("flags", "error"), [({"repeat": "1h"}, "parse error"), ({"invasive": "0"}, "panic")])
def test_rejects_flags_that_the_release_cannot_parse(flags: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        autopilot.run(on_node(**flags).as_pod_context(), threading.Event())


def test_the_metrics_have_the_checks_of_each_gpu() -> None:
    faults = [new_fault(FaultKind.ECC, "n", "3"), new_fault(FaultKind.THERMAL, "n", "4")]
    lines = autopilot.text(node_hardware(skus.sku(H100), "n", faults), []).splitlines()
    failing = {line for line in lines if line.endswith(" 1")}
    assert len(failing) == 2
    assert any('health="remapped"' in line and 'deviceid="3"' in line for line in failing)
    assert any('health="power-slowdown"' in line and 'deviceid="4"' in line for line in failing)
    assert sum('health="pciebw"' in line for line in lines) == 8
