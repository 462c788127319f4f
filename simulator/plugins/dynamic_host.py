"""Runs the SDK's server of dynamic providers until its parent ends.

Otherwise, the server would outlive a killed engine.
"""

from __future__ import annotations

import os
import runpy
import threading
import time

_PARENT_POLL_SECONDS = 1.0


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    runpy.run_module("pulumi.dynamic", run_name="__main__", alter_sys=True)
