"""Runs the scheduler and controller of scheduler-plugins 0.33.5 with the chart of 0.34.7.

Version 0.34.7 does not build. If the chart's configuration has fields that 0.33.5 does not know, the scheduler rejects
them. Only listening addresses and kubeconfig differ from AKS.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from simulator.host import files, paths
from simulator.kubelet.programs import HostProcess, ImageProgram, PodContext
from simulator.operators._real import configuration, pins, serves

_CONFIG = "/etc/kubernetes/scheduler-config.yaml"
_SECURE_PORT = 10259
_CONTROLLER_PORTS = {"--metricsAddr": 8080, "--probeAddr": 8081}
_PINS = pins(Path(__file__).parent)
_SCHEDULER, _CONTROLLER = _PINS.tools
STATUS = f"scheduler-plugins: real {_PINS.version} under the chart of 0.34.7 (newer ones do not build here)"


def _scheduler(ctx: PodContext) -> list[str]:
    kubeconfig = ctx.kubeconfig()
    config = configuration(ctx, _CONFIG, "a scheduler")
    config["clientConnection"] = {**(config.get("clientConnection") or {}), "kubeconfig": kubeconfig}
    file = Path(kubeconfig).with_name("scheduler-config.yaml")
    files.replace(file, yaml.safe_dump(config))
    logins = [f"--{kind}-kubeconfig={kubeconfig}" for kind in ("authentication", "authorization")]
    own = [f"--config={file}", *logins, "--bind-address=127.0.0.1", f"--secure-port={ctx.local_port(_SECURE_PORT)}"]
    return [str(paths.tool(_SCHEDULER)), *ctx.argv()[1:], *own]  # the last of repeated flags counts


def _controller(ctx: PodContext) -> list[str]:
    """Returns the command. The chart sets only its arguments."""
    own = [f"{flag}=127.0.0.1:{ctx.local_port(port)}" for flag, port in _CONTROLLER_PORTS.items()]
    return ["env", f"KUBECONFIG={ctx.kubeconfig()}", str(paths.tool(_CONTROLLER)), *ctx.argv(), *own]


PROGRAMS = (
    ImageProgram("scheduler-plugins/kube-scheduler", HostProcess(_scheduler, serves(_SECURE_PORT), _PINS.tools)),
    ImageProgram(
        "scheduler-plugins/controller", HostProcess(_controller, serves(*_CONTROLLER_PORTS.values()), _PINS.tools)
    ),
)
