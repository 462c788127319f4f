"""What all tests share."""

from __future__ import annotations

import os

from simulator.paths import ROOT, kube_cache

os.environ.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / ".simulator" / "pycache"))
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["KUBECACHEDIR"] = str(kube_cache())
