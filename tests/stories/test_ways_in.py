"""The command of the notebook's output, run as told, opens it; and `status` tells which workload has a node."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Callable, Iterator

import httpx
import pytest
import yaml

from simulator.host import paths
from tests.support.world import Stack, eventually

pytestmark = pytest.mark.simulator
OPTIONS = yaml.safe_load((paths.ROOT / "Pulumi.dev.yaml").read_text())["config"]["ai-on-aks:workloadOptions"]
PASSWORD = "open-sesame"
"""The public one, of the simulator's stacks."""


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    """With a training that does not end, and takes what it is told of dashboards."""
    options = {"jupyterlab": OPTIONS["jupyterlab"], "metaseq": {"aim": True, "tensorboard": True}}
    made = new_stack("ways-in", workloads="jupyterlab,metaseq", workloadOptions=options)
    made.up()
    return made


@contextlib.contextmanager
def way_in(stack: Stack, workload: str, output: str) -> Iterator[httpx.Client]:
    """Runs the command of an output, to a free port of this machine; a client of what answers there."""
    command = re.sub(r"\d+:(\d+)$", r":\1", stack.workloads()[workload][output])
    environment = stack.world.environment | {"KUBECONFIG": str(stack.world.kubeconfig(stack.name))}
    shell = ["bash", "-c", f"trap 'kill $(jobs -p)' EXIT; {command} & wait"]
    with subprocess.Popen(shell, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as way:
        try:
            said, lines = "", iter(way.stdout or ())
            while not (port := re.search(r"Forwarding from 127\.0\.0\.1:(\d+)", said)):
                said += next(lines)
            with httpx.Client(base_url=f"http://127.0.0.1:{port[1]}", trust_env=False, timeout=30) as client:
                yield client
        finally:
            way.terminate()


def test_the_notebook_is_behind_its_password(stack: Stack) -> None:
    eventually(lambda: _available(stack), "the notebook is available")
    with way_in(stack, "jupyterlab", "command") as client:
        assert client.get("/api/contents").status_code == 403
        client.get("/login")
        form = {"password": PASSWORD, "_xsrf": client.cookies["_xsrf"]}
        assert client.post("/login", data=form).status_code == 302
        assert [entry["name"] for entry in client.get("/api/contents").json()["content"]] == ["work"]


def _available(stack: Stack) -> bool:
    deployment = stack.kube.get("apps/v1", "Deployment", "jupyterlab", "ai")
    return bool(deployment.get("status", {}).get("availableReplicas"))


@pytest.mark.long
def test_status_tells_who_has_the_gpus(stack: Stack) -> None:
    eventually(lambda: "num_updates" in _log(stack), "the training has made updates", 180)
    said = stack.world.simulator("status").stdout
    gpu = next(line for line in said.splitlines() if line.startswith("gpu"))
    assert gpu.split() == ["gpu", "Standard_ND96isr_H100_v5", "2", "16", "8", "8", "ai/metaseq", "8"]


def _log(stack: Stack) -> str:
    return stack.kube.text("/api/v1/namespaces/ai/pods/metaseq-mpimaster-0/log")
