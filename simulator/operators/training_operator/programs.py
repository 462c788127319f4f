"""The training operator's own pod: the real controller of the release's version.

It keeps its webhooks' certificates in a folder that no option changes, so it runs in a sandbox, as AppWrapper's manager
does (simulator/sandbox/recipes/training-operator.yaml).
"""

from __future__ import annotations

from pathlib import Path

from simulator.kubelet.programs import ImageProgram
from simulator.operators._real import pins

PROGRAMS: tuple[ImageProgram, ...] = ()
STATUS = f"training operator: real {pins(Path(__file__).parent).version}, which is made when a stack first has it"
