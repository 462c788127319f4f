from __future__ import annotations

import os
from pathlib import Path

import httpx
import pytest

from simulator.host import paths
from simulator.kube.client import ApiError
from simulator.kubelet import folders
from simulator.kubelet.logs import logs_in
from simulator.kubelet.programs import HostProcess, PodContext
from simulator.kubelet.runner import Stop, run
from tests.unit.simulator.kubelet.cluster import Cluster
from tests.unit.simulator.kubelet.pods import context, make

FAKE_GO = """#!/bin/sh
if [ "$1" = env ]; then echo go1.26.8; exit; fi
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\\necho collects\\n' >"$2"
chmod +x "$2"
"""


def test_builds_a_missing_executable_and_logs_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    go = tmp_path / "path" / "go"
    go.parent.mkdir()
    go.write_text(FAKE_GO)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("AI_ON_AKS_CACHE", str(tmp_path / "cache"))
    pod = make()
    ctx = context(cluster, pod, pod["spec"]["containers"][0])
    program = HostProcess(lambda _: [str(paths.tool("nfd-gc"))], tools=("nfd-gc",))
    assert run(ctx, program, Stop(), lambda: None) == 0
    log = "".join(file.read_text() for file in logs_in(folders.logs_of(cluster.folder, pod) / "main"))
    assert "the simulator has no nfd-gc yet" in log
    (event,) = cluster.kube.list("v1", "Event", "ai")
    assert event["reason"] == "ToolMissing"
    assert event["message"].startswith("the simulator has no nfd-gc yet, and builds it once: -m simulator.tools")
    assert "nfd-gc 0.19.0: built" in log
    assert log.endswith("stdout F collects\n")
    assert run(ctx, HostProcess(lambda _: [], tools=("nothing",)), Stop(), lambda: None) == 1


def test_a_process_starts_once_the_api_server_answers_again(cluster: Cluster) -> None:
    pod, refusals = make(), [httpx.RemoteProtocolError("Server disconnected"), ApiError(503, "Unavailable", "no etcd")]

    def argv(_: PodContext) -> list[str]:
        if refusals:
            raise refusals.pop()
        return ["true"]

    ctx = context(cluster, pod, pod["spec"]["containers"][0])
    assert run(ctx, HostProcess(argv), Stop(), lambda: None) == 0
    assert not refusals


def test_a_process_does_not_start_if_the_api_server_forbids_it(cluster: Cluster) -> None:
    pod = make()

    def argv(_: PodContext) -> list[str]:
        raise ApiError(403, "Forbidden", "cannot get secrets")

    assert run(context(cluster, pod, pod["spec"]["containers"][0]), HostProcess(argv), Stop(), lambda: None) == 1
