"""Creates sandboxes for containers with images that run as scripts (`docker/`)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from simulator.kubelet.context import ContainerContext
from simulator.kubelet.devices import Allocation
from simulator.kubelet.nodes import NodeKeeper
from simulator.kubelet.runner import Script
from simulator.kubelet.shim_client import Shim, run_folder
from simulator.sandbox import sandbox
from simulator.sandbox.images import RecipeError, has_recipe, image_name, image_named
from simulator.sandbox.spec import Mount, SandboxError, SandboxSpec
from simulator.world import snapshot


class Scripts:
    def __init__(self, keeper: NodeKeeper, world: Path, api_port: int) -> None:
        """`world` is the folder with world.json and the uplink's socket. `api_port` is a port of this machine."""
        self._keeper, self._world, self._api_port = keeper, world, api_port

    def find(self, image: str) -> Script | None:
        """Returns the image's script, or None if it has no recipe or this machine cannot run sandboxes."""
        if not has_recipe(image) or sandbox.available() is not None:
            return None
        return Script(self._command, lambda ctx: Shim.of(ctx.volumes.folder, ctx.container["name"]), _tools(image))

    def _command(self, ctx: ContainerContext) -> tuple[Sequence[str], Mapping[str, str]]:
        allocation: Allocation = self._keeper.allocate(ctx.pod, ctx.node)
        run_dir = run_folder(ctx.volumes.folder, ctx.container["name"])
        run_dir.mkdir(parents=True, exist_ok=True)
        security = (ctx.pod["spec"].get("securityContext") or {}) | (ctx.container.get("securityContext") or {})
        spec = SandboxSpec(
            pod=snapshot.pod_key(ctx.pod),
            image=image_name(ctx.container["image"]),
            argv=tuple(ctx.argv()),
            hostname=str(ctx.pod["spec"].get("hostname") or ctx.pod["metadata"]["name"]),
            hardware=self._keeper.hardware(ctx.node),
            run_dir=run_dir,
            world_dir=self._world,
            env=ctx.env(),
            workdir=str(ctx.container.get("workingDir", "")),
            mounts=tuple(_mounts(ctx)),
            gpus=tuple(dict.fromkeys(allocation["gpus"])),
            hcas=tuple(allocation["hcas"]),
            shm_bytes=snapshot.shm_bytes(ctx.pod),
            capabilities=frozenset((security.get("capabilities") or {}).get("add", [])),
            privileged=bool(security.get("privileged")),
            user=security.get("runAsUser"),
            group=security.get("runAsGroup", 0),
            ip=str(ctx.pod.get("status", {}).get("podIP", "")),
            api_port=self._api_port,
            uid=ctx.pod["metadata"]["uid"],
            neighbours=_neighbours(ctx),
            node_dir=ctx.volumes.node_root,
        )
        try:
            sandbox.prepare(spec)
            return sandbox.command(spec), sandbox.environment(spec)
        except SandboxError as error:
            raise ValueError(str(error)) from error


def _neighbours(ctx: ContainerContext) -> dict[int, str]:
    others = (c for c in ctx.pod["spec"]["containers"] if c["name"] != ctx.container["name"] and has_recipe(c["image"]))
    return {int(port["containerPort"]): str(c["name"]) for c in others for port in c.get("ports", [])}


def _tools(image: str) -> tuple[str, ...]:
    with contextlib.suppress(RecipeError):
        return tuple(image_named(image_name(image)).tools.values())
    return ()


def _mounts(ctx: ContainerContext) -> list[Mount]:
    """Returns the container's mounts without /dev/shm, which the sandbox creates."""
    mounts = []
    for mount in sorted(ctx.container.get("volumeMounts", []), key=lambda mount: mount["mountPath"]):
        volume = ctx.volume(mount["name"])
        if mount["mountPath"].rstrip("/") == "/dev/shm":
            continue
        read_only = bool(mount.get("readOnly")) or ctx.volumes.read_only(volume)
        shared = mount.get("mountPropagation") == "Bidirectional"
        mounts.append(Mount(ctx.source(mount), mount["mountPath"], read_only, shared))
    return mounts
