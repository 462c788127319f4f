from __future__ import annotations

import gc
import os

from hypothesis import HealthCheck, settings

from simulator.host.paths import ROOT, kube_cache
from tests.support.case_files import title

os.environ.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / ".simulator" / "pycache"))
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["KUBECACHEDIR"] = str(kube_cache())
os.environ.setdefault("GOGC", "400")  # a test's control plane lives for a minute: spend memory, not CPU
gc.set_threshold(500_000, 10, 10)  # the SDKs have a million objects, and collecting took a third of the time

# Hypothesis's deadline for an example fails on a busy machine.
settings.register_profile("any-load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-load")


def pytest_collection_finish() -> None:
    gc.freeze()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Leaves strings to pytest: some, like tokens, differ between its processes, and it numbers long ones."""
    try:
        return None if isinstance(val, str) else title(val)
    except TypeError:
        return None
