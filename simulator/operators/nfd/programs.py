"""Runs the real nfd-master, nfd-worker and nfd-gc with the chart's version and arguments.

A worker reads the simulated /sys and /etc/os-release in its working directory (tools.yaml). Links there lead to the
volumes of the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import yaml

from simulator.host import files, paths
from simulator.kubelet.programs import HostProcess, ImageProgram, PodContext
from simulator.operators._real import pins
from simulator.sandbox import sandbox
from simulator.world.nodes import hardware_of

IMAGE = "node-feature-discovery"
SOURCES = ("kernel", "pci", "system")
"""Feature sources that simulated nodes have files for. Other sources would report this machine's CPU, or log errors."""
_PORT = 8080
_HOST = "/host-"
_CONFIG = "/etc/kubernetes/node-feature-discovery/{tool}.conf"
_OF_THE_MACHINE = ("/proc/modules", "/proc/config.gz")
"""Files about this machine's kernel, which a worker must not report."""
_PINS = pins(Path(__file__).parent)
STATUS = f"NFD: real {_PINS.version}, on the simulated nodes' /sys"


def sources(config: bytes | None) -> list[str]:
    """Returns the simulated sources that nfd-worker.conf enables (`<name>` or `all`) and does not exclude (`-<name>`).

    Ignores errors in the file, because NFD reports them.
    """
    try:
        core = yaml.safe_load(config or b"")["core"]
        chosen = core.get("featureSources", ["all"]) or []
        chosen = chosen if isinstance(chosen, list) else ["all"]
    except (yaml.YAMLError, TypeError, KeyError, AttributeError):
        chosen = ["all"]
    return [name for name in SOURCES if f"-{name}" not in chosen and ("all" in chosen or name in chosen)]


def _argv(tool: str) -> Callable[[PodContext], list[str]]:
    def build(ctx: PodContext) -> list[str]:
        config = _CONFIG.format(tool=tool)
        own = [f"-kubeconfig={ctx.kubeconfig()}", *(f"-port={local}" for local in _ports(ctx).values())]
        if ctx.file(config) is not None:
            own.append(f"-config={ctx.host_path(config)}")
        before = ["env", f"KUBERNETES_NAMESPACE={ctx.pod['metadata']['namespace']}"]
        if tool == "nfd-worker":
            before = [*_on_node(ctx), *before]
            own.append(f"-feature-sources={','.join(sources(ctx.file(config)))}")
        return [*before, str(paths.tool(tool)), *ctx.argv()[1:], *own]  # the last of repeated flags counts

    return build


def _on_node(ctx: PodContext) -> list[str]:
    """Returns words before a command, by which it sees the mounts in its folder and the node's kernel in /proc."""
    folder = Path(ctx.kubeconfig()).with_name("host")
    for path in (mount["mountPath"] for mount in ctx.container.get("volumeMounts", [])):
        if path.startswith(_HOST):
            link = folder / path.lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            files.link(link, Path(ctx.host_path(path)))
    folder.mkdir(parents=True, exist_ok=True)
    release, nothing = folder / "osrelease", folder / "nothing"
    files.replace(release, hardware_of(ctx.node).kernel + "\n", mode=0o644)
    files.replace(nothing, "", mode=0o644)
    hidden = {path: nothing for path in _OF_THE_MACHINE if Path(path).exists()}
    return [*sandbox.overlaid({"/proc/sys/kernel/osrelease": release, **hidden}), "env", "-C", str(folder)]


def _ports(ctx: PodContext) -> Mapping[int, int]:
    """Returns the port for health and metrics. Empty for the hook that removes labels (`-prune`)."""
    words: Sequence[str] = ctx.argv()
    if "-prune" in words:
        return {}
    chosen = [int(word.partition("=")[2]) for word in words if word.startswith("-port=")]
    port = chosen[-1] if chosen else _PORT
    return {port: ctx.local_port(port)}


PROGRAMS = tuple(
    ImageProgram(IMAGE, HostProcess(_argv(tool), _ports, _PINS.tools), command=tool) for tool in _PINS.tools
)
