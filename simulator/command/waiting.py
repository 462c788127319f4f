"""Waits for a stack's workloads, and reports why each waits: at the start, on changes, and periodically."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence

from simulator.command.diagnosed import Finding
from simulator.command.jobs import Workload
from simulator.tools.progress import elapsed, wrapped

_LASTS_S = 10.0
"""Seconds that a stuck workload has before the wait ends: a kubelet retries after a few seconds."""
_HEARTBEAT_S = 30.0
"""The maximum seconds without a report. Within this time, progress of pods is reported only if the phase changes."""
_REPEAT_S = 300.0
"""Seconds until a cause is reported again. Some causes come and go (ErrImagePull)."""
_LACKS = re.compile(r"(\d+ Insufficient \S+\s*)+")
"""Counts in the scheduler's messages. Comparisons ignore them, because they change often."""


def wait(observed: Callable[[], list[Workload]], timeout_s: float, write: Callable[[str], None]) -> list[Workload]:
    """Waits until all workloads have settled, one is stuck, or time is up.

    `observed` waits for and returns the next state.
    """
    start = time.monotonic()
    reporter = _Reporter(write, start)
    stuck_since: dict[str, float] = {}
    while True:
        workloads, now = observed(), time.monotonic()
        reporter.report(workloads, now)
        stuck_since = {each.name: stuck_since.get(each.name, now) for each in workloads if each.stuck}
        if all(workload.settled for workload in workloads) or now - start > timeout_s:
            return workloads
        if any(now - since >= _LASTS_S for since in stuck_since.values()):
            return workloads


class _Reporter:
    """Reports each shared cause once, with the names of all workloads."""

    def __init__(self, write: Callable[[str], None], start: float) -> None:
        self._write, self._start, self._last_output = write, start, start
        self._seen: dict[str, set[str]] = {}
        self._reported_at: dict[tuple[str, str], float] = {}

    def report(self, workloads: Sequence[Workload], now: float) -> None:
        shared: dict[Finding, None] = {}
        news: dict[str, list[str]] = {}
        silent = now - self._last_output >= _HEARTBEAT_S
        for workload in workloads:
            changed = workload.head not in self._seen.get(workload.name, ())
            causes = [cause for cause in workload.report.findings if changed or silent or not cause.passing]
            shared |= dict.fromkeys(cause for cause in causes if cause.shared)
            news[workload.name] = self._changes(
                workload.name, workload.head, [cause for cause in causes if not cause.shared], now
            )
        news["platform"] = self._changes("platform", "platform: NotReady" if shared else "", list(shared), now)
        self._write_all({name: lines for name, lines in news.items() if lines})
        waiting = [f"{each.name} {each.phase}" for each in workloads if not each.settled]
        if waiting and now - self._last_output >= _HEARTBEAT_S:
            self._last_output = now
            self._write("\n".join(wrapped(f"{elapsed(now - self._start)} still waiting: {', '.join(waiting)}", "  ")))

    def _changes(self, name: str, head: str, causes: Sequence[Finding], now: float) -> list[str]:
        """Returns `head`, and causes that are new and not reported lately. Returns nothing if nothing is new."""
        texts = [head, *(cause.text for cause in causes)]
        parts = {_gist(text): text for text in texts}
        seen, self._seen[name] = self._seen.get(name, set()), set(parts)
        lately = now - _REPEAT_S
        new = [part for part in parts if part not in seen and self._reported_at.get((name, part), lately) <= lately]
        if not new or not head:
            return []
        self._last_output = now
        known = {part: self._holder(name, part, now) for part in new}
        self._reported_at |= {(name, part): now for part in new}
        waits = (f"  waits: for the same reason as {known[part]}" if known[part] else parts[part] for part in new)
        return list(dict.fromkeys([texts[0], *waits]))

    def _holder(self, name: str, part: str, now: float) -> str:
        reported = self._reported_at.items()
        others = (other for (other, known), at in reported if known == part and other != name and at < now)
        return next((other for other in others if part in self._seen.get(other, ())), "")

    def _write_all(self, news: Mapping[str, Sequence[str]]) -> None:
        """Writes heads and new causes, but each shared cause only once."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for name, (_, *causes) in news.items():
            for cause in causes:
                groups.setdefault(tuple(each for each, lines in news.items() if cause in lines), []).append(cause)
            if not causes:
                groups[(name,)] = []
        for names, causes in groups.items():
            self._write("\n".join([*(news[name][0] for name in names), *dict.fromkeys(causes)]))


def _gist(text: str) -> str:
    """Removes counts and line breaks, to compare causes."""
    return _LACKS.sub("", " ".join(text.split()))
