"""Waits for the workloads of a stack, and tells what each waits for: at once, when it changes, and now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from diagnosis.finding import wrapped
from simulator.jobs import Workload
from simulator.tools.progress import elapsed

_POLL_S = 1.0
_LASTS_S = 10.0
"""For so long something is missing before it counts as missing: a kubelet needs a few seconds to try again."""
_HEARTBEAT_S = 30.0
"""For so long nothing is told at most, and nothing is told twice: some causes come and go (ErrImagePull)."""


def wait(observed: Callable[[], list[Workload]], timeout_s: float, tell: Callable[[str], None]) -> list[Workload]:
    """Until all have settled, one is stuck, or time is up."""
    start = time.monotonic()
    teller = _Teller(tell, start)
    stuck_since: dict[str, float] = {}
    while True:
        workloads, now = observed(), time.monotonic()
        teller.look(workloads, now)
        stuck_since = {each.name: stuck_since.get(each.name, now) for each in workloads if each.stuck}
        if all(workload.settled for workload in workloads) or now - start > timeout_s:
            return workloads
        if any(now - since >= _LASTS_S for since in stuck_since.values()):
            return workloads
        time.sleep(_POLL_S)


class _Teller:
    """What has been told of each workload, and when."""

    def __init__(self, tell: Callable[[str], None], start: float) -> None:
        self._tell, self._start, self._spoke = tell, start, start
        self._last: dict[str, str] = {}
        """By workload."""
        self._told_at: dict[str, float] = {}
        """By text."""

    def look(self, workloads: Sequence[Workload], now: float) -> None:
        for workload in workloads:
            text = "\n".join(workload.lines())
            lately = text in self._told_at and now - self._told_at[text] < _HEARTBEAT_S
            if text != self._last.get(workload.name) and not lately:
                self._last[workload.name], self._told_at[text], self._spoke = text, now, now
                self._tell(text)
        waiting = [f"{each.name} {each.phase}" for each in workloads if not each.settled]
        if waiting and now - self._spoke >= _HEARTBEAT_S:
            self._spoke = now
            self._tell("\n".join(wrapped(f"{elapsed(now - self._start)} still waiting: {', '.join(waiting)}", "  ")))
