"""AppWrapper's own pod: the real controller of the release's version.

Its webhooks listen at a port that no option changes, and its other ports are in a ConfigMap that it reads from the API.
So it has a network to itself: it runs in a sandbox (simulator/sandbox/recipes/appwrapper.yaml), which the API server
reaches by the pod's address.
"""

from __future__ import annotations

from pathlib import Path

from simulator.kubelet.programs import ImageProgram
from simulator.operators._real import pins

PROGRAMS: tuple[ImageProgram, ...] = ()
STATUS = f"AppWrapper: real {pins(Path(__file__).parent).version}, which is made when a stack first has it"
