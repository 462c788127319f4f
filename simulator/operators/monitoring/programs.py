"""Runs the real operator, Prometheus and kube-state-metrics of kube-prometheus-stack, with the pods' arguments.

Only listening addresses and file paths differ. Alertmanager and Grafana do not run. Node exporters are emulated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from simulator.host import paths
from simulator.kubelet.programs import Controller, HostProcess, ImageProgram, OneShot, Page, PodContext
from simulator.operators._real import pins, serves
from simulator.operators.monitoring import certgen, node_exporter, reloader

_PINS = pins(Path(__file__).parent)
OPERATOR, PROMETHEUS, PROMTOOL, STATE_METRICS = _PINS.tools
STATUS = (
    f"monitoring: real operator {_PINS.version}, Prometheus 3.14 and kube-state-metrics; no Alertmanager, no Grafana"
)
_OPERATOR_PORT, _PROMETHEUS_PORT = 10250, 9090
_STATE_METRICS_PORTS = {"--port": 8080, "--telemetry-port": 8081}
_CONFIG_FLAG, _DATA_FLAG = "--config.file", "--storage.tsdb.path"
_UNKNOWN = ("--web.console.", "--storage.tsdb.wal-compression")


def _operator(ctx: PodContext) -> list[str]:
    files = [f"--web.{part}-file={ctx.host_path(f'/cert/{part}')}" for part in ("cert", "key")]
    listen = f"--web.listen-address=127.0.0.1:{ctx.local_port(_OPERATOR_PORT)}"
    kept = [each for each in ctx.argv() if not each.startswith(("--web.cert-file", "--web.key-file", "--web.listen"))]
    return ["env", f"KUBECONFIG={ctx.kubeconfig()}", str(paths.tool(OPERATOR)), *kept, *files, listen]


def _prometheus(ctx: PodContext) -> list[str]:
    """Returns the command. Prometheus detects when the reloader changes the configuration file."""
    given = [each for each in ctx.argv() if each.startswith("--") and not each.startswith(_UNKNOWN)]
    kept = [each for each in given if not each.startswith((_CONFIG_FLAG, _DATA_FLAG, "--web.config.file"))]
    own = [
        f"{_CONFIG_FLAG}={ctx.host_path(reloader.argument(ctx, _CONFIG_FLAG))}",
        f"{_DATA_FLAG}={ctx.host_path('/prometheus')}",
        f"--web.listen-address=127.0.0.1:{ctx.local_port(_PROMETHEUS_PORT)}",
        "--enable-feature=auto-reload-config",
        "--config.auto-reload-interval=5s",
    ]
    return [str(paths.tool(PROMETHEUS)), *kept, *own]


def _state_metrics(ctx: PodContext) -> list[str]:
    own = [f"{flag}={ctx.local_port(port)}" for flag, port in _STATE_METRICS_PORTS.items()]
    own += ["--host=127.0.0.1", "--telemetry-host=127.0.0.1", f"--kubeconfig={ctx.kubeconfig()}"]
    return [str(paths.tool(STATE_METRICS)), *ctx.argv(), *own]


def _program(argv: Callable[[PodContext], list[str]], tools: Sequence[str], *ports: int) -> HostProcess:
    return HostProcess(argv, serves(*ports), tuple(tools))


_RELOADER = "prometheus-operator/prometheus-config-reloader"
PROGRAMS = (
    ImageProgram("prometheus-operator/prometheus-operator", _program(_operator, [OPERATOR], _OPERATOR_PORT)),
    ImageProgram(_RELOADER, OneShot(reloader.once), command="--watch-interval=0"),
    ImageProgram(_RELOADER, Controller(reloader.run), command="prometheus.env.yaml"),
    ImageProgram("prometheus/prometheus", _program(_prometheus, [PROMETHEUS], _PROMETHEUS_PORT)),
    ImageProgram(
        "kube-state-metrics/kube-state-metrics",
        _program(_state_metrics, [STATE_METRICS], *_STATE_METRICS_PORTS.values()),
    ),
    ImageProgram("kube-webhook-certgen", OneShot(certgen.create), command="create"),
    ImageProgram("kube-webhook-certgen", OneShot(certgen.patch), command="patch"),
    # This init container changes the owner of Grafana's disk. Simulated disks have no owner.
    ImageProgram(
        "library/busybox", OneShot(lambda ctx: ctx.log("simulated: disks have no owners")), "chown -R 472:472"
    ),
    ImageProgram("prometheus/node-exporter", page=Page(node_exporter.port, node_exporter.text)),
)
