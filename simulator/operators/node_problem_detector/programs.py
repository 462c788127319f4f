"""node-problem-detector's own pod: the real one, of the version that our image is built on.

It runs the image's scripts, which look at the node: so it runs in a sandbox on that node
(simulator/sandbox/recipes/node-problem-detector.yaml).
"""

from __future__ import annotations

from pathlib import Path

from simulator.kubelet.programs import ImageProgram
from simulator.operators._real import pins

PROGRAMS: tuple[ImageProgram, ...] = ()
STATUS = f"node-problem-detector: real {pins(Path(__file__).parent).version}, which is made when a stack first has it"
