"""What all tests share."""

from __future__ import annotations

import gc
import os

from hypothesis import HealthCheck, settings

from simulator.host.paths import ROOT, kube_cache
from tests.support.case_files import title

os.environ.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / ".simulator" / "pycache"))
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["KUBECACHEDIR"] = str(kube_cache())
os.environ.setdefault("GOGC", "400")  # a test's control plane lives for a minute: memory is cheaper than collecting it
gc.set_threshold(
    500_000, 10, 10
)  # the SDKs' classes are a million objects: looking for cycles took a third of the time

# Hypothesis's limits of time for an example fail on a machine under load.
settings.register_profile("any-load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-load")


def pytest_collection_finish() -> None:
    """Keeps what is imported by now out of all further looking."""
    gc.freeze()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Names a case after its value, which pytest would only number.

    Texts are left to pytest, which numbers long ones: some, like tokens, are different in each of its processes.
    """
    try:
        return None if isinstance(val, str) else title(val)
    except TypeError:
        return None
