"""Prints an update in a few lines if there is no terminal: phases, all messages, and a summary.

Reads the events of `pulumi up --json`, one per line (apitype.EngineEvent of pulumi's sdk/go).
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from k8s.objects import Object
from simulator.tools.progress import elapsed

_QUIET_S = 30.0
"""Seconds without output until `tick` names pending operations."""
_NAMED = 3
_COMPONENT = re.compile(r"ai-on-aks:[^:$]+:(\w+)")
_DOING = {"create": "creating", "update": "updating", "delete": "deleting"}
_DONE = {"create": "created", "update": "updated", "delete": "deleted", "replace": "replaced", "same": "unchanged"}
_GROUPS = ("Foundation", "Platform")
_STACK = "pulumi:pulumi:Stack"
_NOT_MADE = (_STACK, "pulumi:providers:", "ai-on-aks:")
"""Prefixes of the types of components and of the engine's own resources."""
_DELETE_OLD = "delete-replaced"
_READS = ("read", "refresh", "discard")


class UpdateLog:
    """The log. Pass pulumi's lines to `read`, and call `tick` regularly."""

    def __init__(self, write: Callable[[str], None], blocked: Callable[[], Sequence[str]] = list) -> None:
        """`blocked` returns known reasons why the update takes long."""
        self._write, self._blocked, self._start = write, blocked, time.monotonic()
        self._last_output = self._start
        self._phases: set[str] = set()
        self._under_way: dict[str, str] = {}
        self._only_stack = True
        self._replaced: set[str] = set()
        self._old: set[str] = set()
        """URNs whose old resource was deleted. An interrupted update may have created the new resource."""
        self._lock = threading.Lock()

    def read(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.event(line)

    def event(self, line: str) -> None:
        with self._lock:
            event = _parsed(line)
            if event is None:  # pulumi's output outside of an update
                self._print(line.rstrip())
            elif step := event.get("resourcePreEvent"):
                self._begins(step["metadata"])
            elif step := event.get("resOutputsEvent") or event.get("resOpFailedEvent"):
                self._under_way.pop(step["metadata"]["urn"], None)
            elif message := event.get("diagnosticEvent"):
                self._message(message)
            elif summary := event.get("summaryEvent"):
                self._summary(summary)

    def tick(self) -> None:
        with self._lock:
            if self._under_way and time.monotonic() - self._last_output >= _QUIET_S:
                names = list(self._under_way.values())
                more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
                self._print("\n".join([f"{self._clock()} still {', '.join(names[:_NAMED])}{more}", *self._blocked()]))

    def _begins(self, step: Object) -> None:
        types, name = step["urn"].split("::")[2:]
        self._only_stack = self._only_stack and types == _STACK
        if step["op"] in ("same", *_READS) or types.rpartition("$")[2].startswith(_NOT_MADE):
            return
        doing = self._doing(step["op"], step["urn"])
        self._under_way[step["urn"]] = f"{doing} {name}"
        phase = f"{doing} {_part(types)}"
        if phase not in self._phases:
            self._phases.add(phase)
            self._print(f"{self._clock()} {phase}")

    def _doing(self, op: str, urn: str) -> str:
        if op == _DELETE_OLD and urn not in self._replaced:
            self._old.add(urn)
            return "deleting the old"
        if "replace" in op:
            self._replaced.add(urn)
            return "replacing"
        return _DOING.get(op, op)

    def _message(self, message: Mapping[str, Any]) -> None:
        if message["severity"] == "debug" or message.get("ephemeral"):
            return
        types, _, name = message.get("urn", "").partition("::")[2].partition("::")[2].partition("::")
        resource = f"{types.rpartition('$')[2]} {name}: " if name and not types.startswith(_STACK) else ""
        self._print(f"{resource}{message.get('prefix', '')}{message['message']}".rstrip())

    def _summary(self, summary: Object) -> None:
        changes = {op: count for op, count in summary["resourceChanges"].items() if op not in _READS}
        if changes == {"create": 1} and self._only_stack:  # only the stack itself: its settings were rejected
            changes = {}
        if finished := len(self._old - self._replaced):
            changes["old resource deleted"] = finished  # the engine counts these in the interrupted update
        counts = ", ".join(f"{count} {_DONE.get(op, op)}" for op, count in changes.items()) or "none"
        self._print(f"{self._clock()} resources: {counts}")

    def _print(self, text: str) -> None:
        self._last_output = time.monotonic()
        self._write(text)

    def _clock(self) -> str:
        return elapsed(time.monotonic() - self._start)


def _parsed(line: str) -> Object | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _part(types: str) -> str:
    if types.startswith("ai-on-aks:workloads/"):
        return "workloads"
    components = [found for found in _COMPONENT.findall(types) if not found.endswith(_GROUPS)]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", components[0]).lower() if components else "workloads"
