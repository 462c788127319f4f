"""Runs the real Kueue manager with the chart's version, configuration and arguments.

Only listening addresses differ from AKS. Webhooks, CRD conversion and the visibility API use Services, as on AKS.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from simulator.host import files, paths
from simulator.kubelet.programs import HostProcess, ImageProgram, PodContext
from simulator.operators._real import configuration, pins

IMAGE = "kueue/kueue"
_CONFIG = "/controller_manager_config.yaml"
_CERTIFICATES, _VISIBILITY = "/tmp/k8s-webhook-server/serving-certs", "/visibility"
_LISTENS = {
    ("health", "healthProbeBindAddress"): 8081,
    ("metrics", "bindAddress"): 8443,
    ("webhook", "port"): 9443,
    ("visibilityServer", "bindPort"): 8082,
}
"""The configuration's fields (part, name) with ports, and Kueue's default ports."""
_PINS = pins(Path(__file__).parent)
(_MANAGER,) = _PINS.tools
STATUS = f"Kueue: real {_PINS.version}, built when a stack first uses it"


def local(config: Mapping[str, Any], ctx: PodContext) -> dict[str, Any]:
    """Returns the configuration with local ports and the namespace. A real pod reads the namespace from a file."""
    namespace = ctx.pod["metadata"]["namespace"]
    ports = {part: ctx.local_port(port) for (part, _), port in _container_ports(config).items()}
    own = {
        "leaderElection": {"resourceNamespace": namespace},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ports['health']}"},
        "metrics": {"bindAddress": f"127.0.0.1:{ports['metrics']}"},
        "webhook": {"host": "127.0.0.1", "port": ports["webhook"], "certDir": ctx.host_path(_CERTIFICATES)},
        "visibilityServer": {"bindAddress": "127.0.0.1", "bindPort": ports["visibilityServer"]},
    }
    return {**config, "namespace": namespace} | {part: _part(config, part) | keys for part, keys in own.items()}


def _container_ports(config: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    found = {place: str(_part(config, place[0]).get(place[1], "")).rpartition(":")[2] for place in _LISTENS}
    return {place: int(found[place]) if found[place].isdecimal() else usual for place, usual in _LISTENS.items()}


def _part(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    return dict(config.get(name) or {})


def _argv(ctx: PodContext) -> list[str]:
    """Returns the command, which runs in a folder with the files at the root of the real image."""
    kubeconfig = Path(ctx.kubeconfig())
    folder = kubeconfig.with_name("manager")
    folder.mkdir(exist_ok=True)
    files.link(folder / _VISIBILITY.lstrip("/"), Path(ctx.host_path(_VISIBILITY)))
    config = folder / "config.yaml"
    files.replace(config, yaml.safe_dump(local(configuration(ctx, _CONFIG, "Kueue"), ctx)))
    own = [f"--config={config}", f"--kubeconfig={kubeconfig}"]  # the last of repeated flags counts
    return ["env", "-C", str(folder), str(paths.tool(_MANAGER)), *ctx.argv()[1:], *own]


def _ports(ctx: PodContext) -> Mapping[int, int]:
    return {port: ctx.local_port(port) for port in _container_ports(configuration(ctx, _CONFIG, "Kueue")).values()}


PROGRAMS = (ImageProgram(IMAGE, HostProcess(_argv, _ports, _PINS.tools)),)
