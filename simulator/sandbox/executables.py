"""Finds the programs of a sandbox: this machine's programs with their libraries, and simulated commands."""

from __future__ import annotations

import functools
import hashlib
import importlib
import py_compile
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from simulator.host import paths
from simulator.sandbox import PATH

PYTHON_HOME = "/opt/simulator/python"
PYTHON = f"{PYTHON_HOME}/bin/python3"
EXTENSION_MODULES = ("binascii", "pyexpat", "_hashlib", "_ssl")
"""Python modules that scripts and commands import. Their libraries must be mounted too."""
COMMANDS = "/opt/simulator/lib"
"""The folder of the simulated commands' modules."""
SHARED = (
    *("__init__.py", "host/__init__.py", "host/files.py", "host/relay.py"),
    *("sandbox/__init__.py", "world/__init__.py", "world/network.py"),
)
_LIBRARY = re.compile(r"(/\S+) \(0x[0-9a-f]+\)")

Bind = tuple[str, str]


class MissingExecutables(LookupError):
    """Programs of an image are missing on this machine."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(
            f"missing here: {', '.join(names)} (Debian, Ubuntu: apt install coreutils findutils hostname mawk tar)"
        )


@functools.cache
def binds(names: tuple[str, ...]) -> tuple[Bind, ...]:
    """Returns bind mounts of programs, at /usr/bin/<name>, and of their libraries. Raises MissingExecutables."""
    found = {name: shutil.which(name, path=PATH) for name in names}
    if missing := sorted(name for name, path in found.items() if path is None):
        raise MissingExecutables(missing)
    programs = [(str(Path(path).resolve()), f"/usr/bin/{name}") for name, path in found.items() if path]
    return (*programs, *_libraries(tuple(source for source, _ in programs)))


@functools.cache
def python_binds(home: str = PYTHON_HOME) -> tuple[Bind, ...]:
    """Returns bind mounts of this interpreter, as `home`/bin/python3, and of its standard library.

    PYTHON_HOME is not on PATH, because only simulated commands use it.
    """
    executable = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    standard_library = str(Path(functools.__file__).parent.resolve())
    origins = [getattr(importlib.import_module(name), "__file__", None) for name in EXTENSION_MODULES]
    extensions = [origin for origin in origins if origin]  # None: built in
    return (
        (executable, f"{home}/bin/python3"),
        (standard_library, f"{home}/{sys.platlibdir}/{version}"),
        *_libraries((executable, *extensions)),
    )


@functools.cache
def package_binds(packages: Path, target: str) -> tuple[Bind, ...]:
    """Returns bind mounts of an image's Python packages, at `target`, and of the packages' libraries."""
    standard = Path(functools.__file__).parent.resolve() / "lib-dynload"
    modules = [str(file) for folder in (packages, standard) for file in sorted(folder.rglob("*.so"))]
    return ((str(packages), target), *_libraries(tuple(modules)))


def command_binds() -> tuple[Bind, ...]:
    """Returns bind mounts of the simulated commands. Compiles them, because sandboxes cannot write bytecode.

    Each version has its own folder, so that running containers keep their version.
    """
    package = paths.ROOT / "simulator"
    own = [sorted((package / "sandbox" / folder).glob("*.py")) for folder in ("commands", "library")]
    sources = [package / name for name in SHARED] + own[0] + own[1]
    stats = [(source, source.stat()) for source in sources]
    state = repr([(str(source), stat.st_mtime_ns, stat.st_size) for source, stat in stats])
    folder = paths.bytecode() / "sandbox" / hashlib.sha256(f"{sys.version}{state}".encode()).hexdigest()[:16]
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent))
        for source in sources:
            _compile(source, fresh, source.relative_to(paths.ROOT))
        fresh.chmod(0o755)
        try:
            fresh.rename(folder)
        except OSError:  # another process created it first
            shutil.rmtree(fresh)
    return ((str(folder), COMMANDS),)


def _compile(source: Path, folder: Path, name: Path) -> None:
    copied = folder / name
    copied.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, copied)
    bytecode = copied.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
    never_checked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(copied), str(bytecode), f"{COMMANDS}/{name}", doraise=True, invalidation_mode=never_checked)


def _libraries(programs: tuple[str, ...]) -> list[Bind]:
    ldd = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False)
    found = sorted(set(_LIBRARY.findall(ldd.stdout)))
    return [(str(Path(path).resolve()), _inside(path)) for path in found]


def _inside(library: str) -> str:
    """Returns a library's path in the sandbox, where /lib links to /usr/lib, as in current distributions."""
    merged = re.sub(r"^/lib", "/usr/lib", library)
    return merged if re.match(r"/usr/lib(32|64)?/", merged) else f"/usr/lib/{Path(library).name}"
