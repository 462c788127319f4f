"""Runs a container's command in a bubblewrap sandbox, isolated from this machine."""

from __future__ import annotations

import functools
import json
import re
import resource
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from simulator.host import files, paths
from simulator.sandbox import devices, executables, machine
from simulator.sandbox.images import SHIM, Image, RecipeError, image_named, programs
from simulator.sandbox.spec import SandboxError, SandboxSpec
from simulator.world import performance

MINIMUM_BWRAP = (0, 8)  # --size and --disable-userns
MEMLOCK_BYTES = 64 * 1024  # the limit of a container without IPC_LOCK (Azure/aks-rdma-infiniband's documentation)
ROOT_BYTES = 2**30
NOBODY = 65534
# In a sandbox, /proc shows this machine, except for processes. Namespaces do not protect /proc from root, and the
# simulator may be root. By default, OCI runtimes make the same paths read-only or hide them.
PROC_READ_ONLY = ("bus", "fs", "irq", "sys", "sysrq-trigger")
PROC_HIDDEN = (
    "acpi",
    "asound",
    "driver",
    "kcore",
    "keys",
    "latency_stats",
    "mtrr",
    "sched_debug",
    "scsi",
    "timer_list",
)
IMAGE_PYTHON = "/usr/local"
"""The folder of Python in official images."""
PACKAGES = "/opt/packages"
_PACKAGE = paths.ROOT / "simulator"


@functools.cache
def available() -> str | None:
    """Returns why this machine cannot run sandboxes, or None."""
    binary = _bwrap()
    if binary is None:
        return "bubblewrap is not installed (Debian, Ubuntu: apt-get install bubblewrap)"
    version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False).stdout
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < MINIMUM_BWRAP:
        return f"{binary} is {version.strip()}; version {'.'.join(map(str, MINIMUM_BWRAP))} or newer is needed"
    if shutil.which("prlimit") is None or shutil.which("ldd") is None:
        return "prlimit (util-linux) and ldd (libc-bin) are needed to set up sandboxes"
    trial = [binary, "--unshare-all", "--unshare-user", "--disable-userns", "--ro-bind", "/", "/", "--proc", "/proc"]
    run = subprocess.run([*trial, "--dev", "/dev", "true"], capture_output=True, text=True, check=False)
    if run.returncode:
        return f"bubblewrap cannot create namespaces on this machine: {run.stderr.strip()}"
    return None


def start(spec: SandboxSpec, stdout: int) -> subprocess.Popen[bytes]:
    """Prepares and starts the container. Writes both output streams to `stdout`. Raises SandboxError.

    Killing the returned process kills the sandbox.
    """
    if reason := available():
        raise SandboxError(reason)
    prepare(spec)
    return subprocess.Popen(
        command(spec),
        env=environment(spec),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def overlaid(others: Mapping[str, Path]) -> list[str]:
    """Returns words to put before a command, so that it sees other files at these paths. Empty without sandboxes."""
    if available():
        return []
    pairs = [word for place, file in others.items() for word in ("--ro-bind", str(file), place)]
    return [_bwrap() or "bwrap", "--dev-bind", "/", "/", *pairs, "--die-with-parent", "--"]


def prepare(spec: SandboxSpec) -> None:
    """Writes /etc and data for simulated commands to run_dir. Deletes the state of an earlier container there."""
    image_of(spec)
    shutil.rmtree(spec.run_dir / "pod", ignore_errors=True)
    (spec.run_dir / "pod").mkdir(parents=True)
    spec.world_dir.mkdir(parents=True, exist_ok=True)
    (spec.run_dir / "device").touch()
    machine.write(spec.node, spec.hardware)
    etc = spec.run_dir / "etc"
    etc.mkdir(exist_ok=True)
    for name, text in _etc(spec).items():
        files.replace(etc / name, text)
    searched = [mount.target for mount in spec.mounts] + [target for _, target in image_of(spec).files]
    shared = [mount.target for mount in spec.mounts if mount.shared and spec.privileged]
    pod = {"pod": spec.pod, "uid": spec.uid}
    found: dict[str, object] = {"mounts": searched, "shared": shared, "commands": image_of(spec).commands}
    itself = {**pod, **found, "neighbours": dict(spec.neighbours)}
    files.replace(spec.run_dir / "self.json", json.dumps(itself))
    files.replace(spec.run_dir / "performance.json", json.dumps(performance.numbers()))
    files.replace(spec.run_dir / "programs.json", json.dumps(programs()))


def command(spec: SandboxSpec) -> list[str]:
    """Returns the command of the sandbox. Run it only with the environment `environment(spec)`. Raises SandboxError."""
    return [
        *_limits(spec),
        _bwrap() or "bwrap",
        *_isolation(spec),
        *_system(spec),
        *_program_files(image_of(spec)),
        *_pod_files(spec),
        *_workdir(spec),
        "--",
        *(SHIM, str(_api_port(spec)), "--"),
        *(spec.argv or image_of(spec).entrypoint),
    ]


def _workdir(spec: SandboxSpec) -> list[str]:
    folder = spec.workdir or image_of(spec).workdir
    return ["--dir", folder, "--chdir", folder]


def environment(spec: SandboxSpec) -> dict[str, str]:
    service = {"HOST": "127.0.0.1", "PORT": str(port)} if (port := _api_port(spec)) else {}
    cluster = {f"KUBERNETES_SERVICE_{name}": value for name, value in service.items()}
    return {"HOME": "/root", "HOSTNAME": spec.hostname, **cluster, **image_of(spec).env, **spec.env}


def _api_port(spec: SandboxSpec) -> int:
    return spec.api_port if spec.api_port is not None and image_of(spec).kubernetes_api else 0


def image_of(spec: SandboxSpec) -> Image:
    """Returns the container's image. Raises SandboxError without a valid recipe."""
    try:
        return image_named(spec.image)
    except RecipeError as error:
        raise SandboxError(str(error)) from error


def _bwrap() -> str | None:
    own = paths.tools_bin() / "bwrap"
    return str(own) if own.exists() else shutil.which("bwrap")


def _limits(spec: SandboxSpec) -> list[str]:
    """Limits locked memory to 64 KiB. Containers with IPC_LOCK have this machine's limit instead."""
    hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    unbounded = spec.privileged or "IPC_LOCK" in spec.capabilities
    limit = hard if unbounded else MEMLOCK_BYTES if hard == resource.RLIM_INFINITY else min(hard, MEMLOCK_BYTES)
    text = "unlimited" if limit == resource.RLIM_INFINITY else str(limit)
    return [shutil.which("prlimit") or "prlimit", f"--memlock={text}:{text}", "--core=0:0", "--"]


def _isolation(spec: SandboxSpec) -> list[str]:
    namespaces = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    rights = ["--unshare-cgroup-try", "--disable-userns", "--cap-drop", "ALL"]
    who = ["--uid", str(_user(spec)), "--gid", str(spec.group)]
    return [*namespaces, *rights, *who, "--die-with-parent", "--new-session", "--hostname", spec.hostname]


def _system(spec: SandboxSpec) -> list[str]:
    arguments = ["--size", str(ROOT_BYTES), "--tmpfs", "/", "--proc", "/proc", *_proc(spec), "--dev", "/dev"]
    arguments += ["--size", str(spec.shm_bytes), "--tmpfs", "/dev/shm"]
    for node in devices.device_nodes(spec.hardware, spec.gpus, spec.hcas, privileged=spec.privileged):
        arguments += ["--ro-bind", str(spec.run_dir / "device"), node]
    arguments += ["--ro-bind", str(spec.node / "sys"), "/sys"]
    for folder in ("/tmp", "/root", "/run", "/var", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64"):
        arguments += ["--dir", folder]
    for link, target in {"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64"}.items():
        arguments += ["--symlink", target, link]
    return [*arguments, "--symlink", "/run", "/var/run"]


def _proc(spec: SandboxSpec) -> list[str]:
    arguments: list[str] = []
    for path in (Path("/proc") / name for name in PROC_READ_ONLY if (Path("/proc") / name).exists()):
        arguments += ["--ro-bind", str(path), str(path)]
    for path in (Path("/proc") / name for name in PROC_HIDDEN if (Path("/proc") / name).exists()):
        arguments += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", str(spec.run_dir / "device"), str(path)]
    return arguments


def _program_files(image: Image) -> list[str]:
    try:
        programs = executables.binds(image.executables)
    except executables.MissingExecutables as error:
        raise SandboxError(f"image {image.name}: {error}") from error
    launcher = str(_PACKAGE / "sandbox" / "library" / "launch")
    pairs = [
        *programs,
        *executables.python_binds(),
        *(executables.python_binds(IMAGE_PYTHON) if image.python else ()),
        *(executables.package_binds(image.packages, PACKAGES) if image.packages else ()),
        *executables.command_binds(),
        *((launcher, path) for path in image.commands),
        *image.files,
        *((str(paths.tool(name).resolve()), path) for path, name in image.tools.items()),
    ]
    arguments: list[str] = []
    for source, target in dict.fromkeys(pairs):
        arguments += ["--ro-bind", source, target]
    return arguments


def _pod_files(spec: SandboxSpec) -> list[str]:
    arguments: list[str] = []
    for name in _etc(spec):
        arguments += ["--ro-bind", str(spec.run_dir / "etc" / name), f"/etc/{name}"]
    arguments += ["--ro-bind", str(spec.world_dir), "/run/simulator/world"]
    for name in ("self.json", "performance.json", "programs.json"):
        arguments += ["--ro-bind", str(spec.run_dir / name), f"/run/simulator/{name}"]
    arguments += ["--bind", str(spec.run_dir / "pod"), "/run/simulator/pod"]
    if spec.neighbours:
        arguments += ["--ro-bind", str(spec.run_dir.parent), "/run/simulator/neighbours"]
    for mount in spec.mounts:
        if mount.target.rstrip("/") == "/dev":
            arguments += _disks(spec)
        else:
            arguments += ["--ro-bind" if mount.read_only else "--bind", str(mount.source), _inside(mount.target)]
    return arguments


def _disks(spec: SandboxSpec) -> list[str]:
    """Adds the node's disks to a privileged container.

    Each disk is a link to a file of the node. Simulated commands update this file, sysfs and the mount table.
    """
    if not spec.privileged:
        return []
    arguments = ["--bind", str(spec.node / "sys" / "block"), "/sys/block"]
    for name in ("dev", "proc"):
        arguments += ["--bind", str(spec.node / name), f"/run/simulator/{name}"]
    for disk in sorted((spec.node / "dev").glob("[!.]*")):
        arguments += ["--symlink", f"/run/simulator/dev/{disk.name}", f"/dev/{disk.name}"]
    return arguments


def _inside(target: str) -> str:
    """Replaces /var/run, a symbolic link, by /run, because bubblewrap cannot create folders behind links."""
    return target.removeprefix("/var") if target.startswith("/var/run/") else target


def _user(spec: SandboxSpec) -> int:
    return image_of(spec).user if spec.user is None else spec.user


def _users(spec: SandboxSpec) -> list[str]:
    user, home = _user(spec), image_of(spec).env.get("HOME", "/")
    own = [] if user in (0, NOBODY) else [f"user:x:{user}:{spec.group}::{home}:/bin/bash"]
    nobody = f"nobody:x:{NOBODY}:{NOBODY}:nobody:/nonexistent:/usr/sbin/nologin"
    return ["root:x:0:0:root:/root:/bin/bash", *own, nobody]


def _etc(spec: SandboxSpec) -> dict[str, str]:
    hardware = spec.hardware
    return {
        "passwd": "".join(f"{line}\n" for line in _users(spec)),
        "group": f"root:x:0:\nnogroup:x:{NOBODY}:\n",
        "hostname": spec.hostname + "\n",
        "hosts": f"127.0.0.1\tlocalhost\n{spec.ip or '127.0.0.1'}\t{spec.hostname}\n",
        "os-release": machine.os_release(hardware),
    }
