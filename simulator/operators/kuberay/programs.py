"""Runs the real KubeRay operator with the release's version and arguments.

Only listening addresses and kubeconfig differ from AKS. The operator reaches Ray's dashboards through the API server's
proxy, because pod addresses do not exist on this machine.
"""

from __future__ import annotations

from pathlib import Path

from simulator.host import paths
from simulator.kubelet.programs import HostProcess, ImageProgram, PodContext
from simulator.operators._real import pins, serves

IMAGE = "kuberay/operator"
_LISTENS = {"--metrics-addr": 8080, "--health-probe-bind-address": 8082}
_PINS = pins(Path(__file__).parent)
(_OPERATOR,) = _PINS.tools
STATUS = f"KubeRay: real {_PINS.version}, built when a stack first uses it; Ray is emulated in ray-finetuning only"


def _argv(ctx: PodContext) -> list[str]:
    """Adds the simulator's flags at the end, because the last of repeated flags counts."""
    own = [f"{flag}=127.0.0.1:{ctx.local_port(port)}" for flag, port in _LISTENS.items()]
    own += [f"--leader-election-namespace={ctx.pod['metadata']['namespace']}", "--use-kubernetes-proxy"]
    return ["env", f"KUBECONFIG={ctx.kubeconfig()}", str(paths.tool(_OPERATOR)), *ctx.argv()[1:], *own]


PROGRAMS = (ImageProgram(IMAGE, HostProcess(_argv, serves(*_LISTENS.values()), _PINS.tools)),)
