"""Runs the real vc-scheduler, vc-controller-manager and vc-webhook-manager 1.10 with the chart of 1.15.

Newer versions do not build from their Go modules. Passes on arguments that 1.10 knows, drops arguments without effect
on a single replica, and rejects all others.
"""

from __future__ import annotations

import base64
import functools
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from simulator.host import paths
from simulator.host.certificates import serving_certificate
from simulator.kube.client import ApiError
from simulator.kubelet.programs import HostProcess, ImageProgram, OneShot, PodContext
from simulator.operators._real import pins
from simulator.operators.volcano.admission_front import ALLOWED, REFUSED

_HEALTH_PORT, _METRICS_PORT, _ADMISSION_PORT = 11251, 8080, 8443
_HARMLESS = {
    "--enable-metrics": {"true", "false"},
    "--enable-pprof": {"false"},
    "--scheduler-sharding-mode": {"none"},
    "--sharding-configmap": None,
    "--sharding-configmap-namespace": None,
    "--graceful-shutdown-time": None,
}
"""Arguments that 1.10 does not know. They are dropped if they have one of these values (None: any value)."""
_FILES = ("--scheduler-conf", "--tls-cert-file", "--tls-private-key-file", "--ca-cert-file", "--admission-conf")
_HANDLED = ("--healthz-address", "--listen-address", "--kubeconfig", "--port", "--plugins-dir")
_SOCKETS = "/tmp/klog-socks"
_BEHIND_FRONT = 18443  # the port of the real manager, which no manifest has
_FRONT = Path(__file__).with_name("admission_front.py")
ANSWERED = ALLOWED | frozenset(REFUSED)


@functools.cache
def _known_flags(tool: str) -> frozenset[str]:
    answer = subprocess.run([paths.tool(tool), "--help"], capture_output=True, text=True, check=False)
    return frozenset(re.findall(r"^\s+(?:-\w, )?(--[a-z-]+)", answer.stdout + answer.stderr, re.M)) | {"-v"}


def map_arguments(args: list[str], known: frozenset[str], path: Callable[[str], str]) -> list[str]:
    """Returns the chart's arguments for 1.10. `path` maps paths of mounted files. Raises ValueError if unsupported."""
    mapped, refused = [], []
    for arg in args:
        flag, _, value = arg.partition("=")
        if flag in _HANDLED or not arg.startswith("-"):  # words such as the chart's "2>&1" have no effect
            continue
        if flag in _FILES:
            mapped.append(f"{flag}={path(value)}")
        elif flag in known:
            mapped.append(arg)
        elif flag not in _HARMLESS or value not in (_HARMLESS[flag] or {value}):
            refused.append(arg)
    if refused:
        raise ValueError(
            f"the simulator runs Volcano 1.10, which has no {', '.join(refused)}: remove it from the values"
        )
    return mapped


def _argv(tool: str) -> Callable[[PodContext], list[str]]:
    def build(ctx: PodContext) -> list[str]:
        mapped = map_arguments(ctx.argv(), _known_flags(tool), ctx.host_path)
        own = [f"--kubeconfig={ctx.kubeconfig()}", f"--healthz-address=127.0.0.1:{ctx.local_port(_HEALTH_PORT)}"]
        if tool == "vc-webhook-manager":
            own += ["--listen-address=127.0.0.1", f"--port={ctx.local_port(_BEHIND_FRONT)}"]
        if tool == "vc-scheduler":
            own.append(f"--listen-address=127.0.0.1:{ctx.local_port(_METRICS_PORT)}")
        sockets = f"DEBUG_SOCKET_DIR={ctx.host_path(_SOCKETS)}" if ctx.env().get("DEBUG_SOCKET_DIR") else "_="
        command = ["env", sockets, str(paths.tool(tool)), *mapped, *own]
        return [*_front(ctx, mapped), *command] if tool == "vc-webhook-manager" else command

    return build


def _front(ctx: PodContext, mapped: list[str]) -> list[str]:
    files = dict(arg.split("=", 1) for arg in mapped if arg.startswith("--tls-"))
    listen, upstream = ctx.local_port(_admission_port(ctx)), ctx.local_port(_BEHIND_FRONT)
    pair = [files["--tls-cert-file"], files["--tls-private-key-file"]]
    _trust(ctx)
    return [sys.executable, str(_FRONT), str(listen), str(upstream), *pair, "--"]


def _trust(ctx: PodContext) -> None:
    """Sets the CA of the webhooks that Volcano 1.10 does not have. Version 1.10 sets the CA of the others."""
    authority = ctx.file(_option(ctx, "--ca-cert-file")) or b""
    service = _option(ctx, "--webhook-service-name")
    bundle = base64.b64encode(authority).decode()
    for configuration in ctx.kube.list("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"):
        clients = [webhook["clientConfig"] for webhook in configuration["webhooks"]]
        own = [
            c for c in clients if c.get("service", {}).get("name") == service and c["service"].get("path") in ANSWERED
        ]
        if any(client.get("caBundle") != bundle for client in own):
            for client in own:
                client["caBundle"] = bundle
            ctx.kube.replace(configuration)


def _option(ctx: PodContext, flag: str) -> str:
    return next(arg.partition("=")[2] for arg in ctx.argv() if arg.startswith(flag + "="))


def _admission_port(ctx: PodContext) -> int:
    chosen = [arg.partition("=")[2] for arg in ctx.argv() if arg.startswith("--port=")]
    return int(chosen[0]) if chosen else _ADMISSION_PORT


def _ports(ctx: PodContext) -> Mapping[int, int]:
    health = {_HEALTH_PORT: ctx.local_port(_HEALTH_PORT)}
    port = _admission_port(ctx)
    return health | ({port: ctx.local_port(port)} if "webhook" in ctx.container["image"] else {})


def make_admission_secret(ctx: PodContext) -> None:
    """Emulates gen-admission-secret.sh of the hook Job: creates a CA and a certificate for the webhook's Service."""
    options = _options(ctx.argv())
    service, namespace, name = options["--service"], options.get("--namespace", "default"), options["--secret"]
    names = (service, f"{service}.{namespace}", f"{service}.{namespace}.svc")
    data = {key: base64.b64encode(value).decode() for key, value in serving_certificate(names).items()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data}
    try:
        ctx.kube.create(secret)
        ctx.log(f"secret/{name} created")
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        ctx.kube.patch("v1", "Secret", name, namespace, {"data": data})
        ctx.log(f"secret/{name} patched")


def _options(argv: list[str]) -> dict[str, str]:
    words = " ".join(argv).replace("=", " ").split()
    return {word: words[i + 1] for i, word in enumerate(words[:-1]) if word.startswith("--")}


_PINS = pins(Path(__file__).parent)
STATUS = f"Volcano: real {_PINS.version} under the chart of 1.15 (newer ones do not build here)"
PROGRAMS = (
    ImageProgram("vc-webhook-manager", OneShot(make_admission_secret), command="gen-admission-secret"),
    *(ImageProgram(tool, HostProcess(_argv(tool), _ports, _PINS.tools)) for tool in _PINS.tools),
)
"""The images have the names of the executables."""
