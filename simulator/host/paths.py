"""The simulator's paths: state in the checkout's `.simulator/`, tools in a cache that all checkouts share."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def home() -> Path:
    """Returns `SIMULATOR_HOME` (tests set it to run several simulators), or this checkout's state folder."""
    return Path(os.environ.get("SIMULATOR_HOME") or ROOT / ".simulator")


def bytecode() -> Path:
    """Returns the folder of compiled modules. Without it, each pulumi command compiles provider SDKs for 4 s."""
    return Path(os.environ.get("PYTHONPYCACHEPREFIX") or home().resolve() / "pycache")


def kube_cache() -> Path:
    """Returns the discovery cache of kubectl and helm. In their default, ~/.kube, nothing would delete it."""
    return home().resolve() / "kube-cache"


def cache() -> Path:
    """Returns the folder of tools and virtual environments by version. Checkouts share it. It is safe to delete."""
    if chosen := os.environ.get("AI_ON_AKS_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ai-on-aks"


def tools_bin() -> Path:
    """Returns the folder with one executable per tool (pulumi, kubectl, kwok, bwrap, ...).

    Each set of pinned versions has a separate folder.
    """
    return cache() / f"bin-{_pins()}"


@functools.cache
def _pins() -> str:
    tools, operators = ROOT / "simulator" / "tools", ROOT / "simulator" / "operators"
    digest = hashlib.sha256()
    pins = (*(tools / "modules").glob("*/go.*"), *(tools / "modules").glob("*/package-lock.json"))
    of_operators = (*operators.glob("*/go.*"), *operators.glob("*/tools.yaml"))
    for file in (tools / "tools.yaml", *sorted(pins), *sorted(of_operators)):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def cluster(cluster_id: str) -> Path:
    """Returns the folder of an AKS cluster: `clusters/rg+aks` for `.../resourceGroups/rg/.../managedClusters/aks`.

    Names are in lower case, because ARM ignores case in ids. ARM does not allow the separator `+` in names.
    """
    parts = cluster_id.lower().strip("/").split("/")
    group = f"{parts[parts.index('resourcegroups') + 1]}+" if "resourcegroups" in parts else ""
    return home() / "clusters" / f"{group}{parts[-1]}"


def tool(name: str) -> Path:
    """Returns a tool's executable, from the cache, else from PATH. Raises FileNotFoundError with the fix."""
    own = tools_bin() / name
    found = own if own.exists() else shutil.which(name)
    if not found:
        raise FileNotFoundError(f"The tool {name} is missing: `make tools` installs it.")
    return Path(found)
