from __future__ import annotations

from typing import Any

import pytest

from simulator.sandbox.commands import gpu_burn
from simulator.sandbox.library import view
from simulator.world import performance


def pod(key: str, *gpus: int, node: str = "n1", phase: str = "Running") -> view.Pod:
    return view.Pod(key, {"node": node, "phase": phase, "gpus": list(gpus)})


def burn(monkeypatch: pytest.MonkeyPatch, me: view.Pod, *others: view.Pod, healthy: bool = True) -> int:
    gpu: dict[str, Any] = {"index": 0, "product": "Tesla T4", "uuid": "GPU-0", "healthy": healthy}
    known = view.View({"n1": {"gpus": [gpu]}}, {each.key: each for each in (me, *others)}, me)
    monkeypatch.setattr(view, "load", lambda: known)
    monkeypatch.setattr(view, "numbers", performance.numbers)
    return gpu_burn.main(["-m", "512", "-stts", "2", "0"])


@pytest.mark.parametrize(
    ("others", "rate"),
    [
        ((), 7290),
        ((pod("ai/b", 0),), 3645),
        ((pod("ai/b", 0, phase="Succeeded"), pod("ai/c", 0, node="n2"), pod("ai/d", 1)), 7290),
    ],
)
def test_pods_that_share_a_gpu_share_its_rate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], others: tuple[view.Pod, ...], rate: int
) -> None:
    assert burn(monkeypatch, pod("ai/a", 0), *others) == 0
    output = capsys.readouterr().out
    assert f"({rate} Gflop/s)" in output
    assert "\tGPU 0: OK" in output


def test_a_lost_gpu_is_faulty(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert burn(monkeypatch, pod("ai/a", 0), healthy=False) == 0
    assert "\tGPU 0: FAULTY" in capsys.readouterr().out


def test_fails_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert burn(monkeypatch, pod("ai/a")) == gpu_burn.NO_DEVICE
    assert "No CUDA devices" in capsys.readouterr().err
