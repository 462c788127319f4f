"""What all tests share."""

from __future__ import annotations

import os

from simulator.paths import ROOT

os.environ.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / ".simulator" / "pycache"))
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
