"""Where the simulator keeps things: state in the checkout's `.simulator/`, tools in a cache shared by all checkouts."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def home() -> Path:
    """The state folder of this checkout; `SIMULATOR_HOME` moves it (tests run several side by side)."""
    return Path(os.environ.get("SIMULATOR_HOME") or ROOT / ".simulator")


def bytecode() -> Path:
    """Where Python keeps compiled modules. Compiling the provider SDKs takes 4 s of every pulumi command without it."""
    return Path(os.environ.get("PYTHONPYCACHEPREFIX") or home().resolve() / "pycache")


def kube_cache() -> Path:
    """Where kubectl and helm keep what each API server serves: else in ~/.kube, for ever."""
    return home().resolve() / "kube-cache"


def cache() -> Path:
    """Tools and virtual environments, keyed by version; safe to delete, shared by checkouts."""
    if chosen := os.environ.get("AI_ON_AKS_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ai-on-aks"


def tools_bin() -> Path:
    """The folder with one executable per tool (pulumi, kubectl, helm, kube-apiserver, kwok, vc-scheduler, bwrap, ...).

    Named by the versions that this checkout pins: checkouts of other versions have a folder of their own.
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
    """The folder of a simulated AKS cluster; `.../resourceGroups/rg/.../managedClusters/aks` has `clusters/rg+aks`.

    ARM compares ids without case, and allows `+` in neither name.
    """
    parts = cluster_id.lower().strip("/").split("/")
    group = f"{parts[parts.index('resourcegroups') + 1]}+" if "resourcegroups" in parts else ""
    return home() / "clusters" / f"{group}{parts[-1]}"


def tool(name: str) -> Path:
    """The executable of a tool: the cache's own, else what PATH has. Raises FileNotFoundError, which says the mend."""
    own = tools_bin() / name
    found = own if own.exists() else shutil.which(name)
    if not found:
        raise FileNotFoundError(f"The tool {name} is missing: `make tools` installs it.")
    return Path(found)
