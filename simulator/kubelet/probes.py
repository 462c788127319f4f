"""Startup, readiness and liveness probes of a container.

Source: kubernetes/kubernetes, pkg/kubelet/prober. The defaults are from the API reference (Probe v1).
"""

from __future__ import annotations

import http.client
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from k8s.objects import Object
from simulator.kubelet.shim_client import Shim, ShimError

Probe = dict[str, Any]


class ProbeFailed(Exception):
    """A failed probe, with the kubelet's message."""


@dataclass(frozen=True)
class Prober:
    """Probes a container from one start to its end."""

    container: Object
    shim: Shim
    ended: threading.Event
    grace_s: float
    ready: Callable[[bool], None]
    warn: Callable[[str, str], None]
    """Records an event with a reason and a message."""

    def start(self) -> None:
        """Starts the probes, which end with the container. Without a readiness probe, a started container is ready."""
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        if not self._started():
            return
        if live := self.container.get("livenessProbe"):
            threading.Thread(target=self._keep_alive, args=("Liveness", live), daemon=True).start()
        if readiness := self.container.get("readinessProbe"):
            self._watch("Readiness", readiness, self.ready)
        else:
            self.ready(True)

    def _started(self) -> bool:
        probe = self.container.get("startupProbe")
        return probe is None or self._keep_alive("Startup", probe)

    def _keep_alive(self, kind: str, probe: Probe) -> bool:
        """If the probe fails, ends the container, so that it restarts. Returns whether a startup probe succeeded."""
        succeeded = threading.Event()
        failed = threading.Event()

        def report(well: bool) -> None:
            (succeeded if well else failed).set()

        self._watch(kind, probe, report, lambda: failed.is_set() or (kind == "Startup" and succeeded.is_set()))
        if failed.is_set():
            name, which = self.container["name"], kind.lower()
            self.warn("Killing", f"Container {name} failed {which} probe, will be restarted")
            self._end()
        return succeeded.is_set()

    def _end(self) -> None:
        with suppress(ShimError):  # the container has ended by itself
            self.shim.signal(signal.SIGTERM)
            if not self.ended.wait(self.grace_s):
                self.shim.signal(signal.SIGKILL)

    def _watch(
        self, kind: str, probe: Probe, report: Callable[[bool], None], enough: Callable[[], bool] = lambda: False
    ) -> None:
        """Calls `report` when the state changes: when successThreshold or failureThreshold is reached in a row."""
        needed = {True: probe.get("successThreshold", 1), False: probe.get("failureThreshold", 3)}
        state, streak, last = None, 0, None
        pause = probe.get("initialDelaySeconds", 0)
        while not enough() and not self.ended.wait(pause):
            pause = probe.get("periodSeconds", 10)
            well = self._succeeds(kind, probe)
            streak = streak + 1 if well is last else 1
            last = well
            if streak >= needed[well] and state is not well and not self.ended.is_set():
                state = well
                report(well)

    def _succeeds(self, kind: str, probe: Probe) -> bool:
        try:
            self._probe(probe)
        except (ProbeFailed, ShimError, OSError, http.client.HTTPException) as error:
            if not self.ended.is_set():
                self.warn("Unhealthy", f"{kind} probe failed: {error}")
            return False
        return True

    def _probe(self, probe: Probe) -> None:
        timeout_s = probe.get("timeoutSeconds", 1)
        if "exec" in probe:
            self._run_command(probe["exec"]["command"])
        elif "httpGet" in probe:
            self._get(probe["httpGet"], timeout_s)
        elif "tcpSocket" in probe:
            self.shim.connect(self._port(probe["tcpSocket"])).close()
        else:
            raise ProbeFailed("the simulator supports only probes by exec, httpGet and tcpSocket")

    def _run_command(self, command: list[str]) -> None:
        null = os.open(os.devnull, os.O_RDWR)
        try:
            code = self.shim.run(command, [null] * 3)
        finally:
            os.close(null)
        if code:
            raise ProbeFailed(f"command exited with {code}")

    def _get(self, get: Object, timeout_s: float) -> None:
        if get.get("scheme", "HTTP") != "HTTP":
            raise ProbeFailed("the simulator does not support probes with TLS: use scheme HTTP")
        port = self._port(get)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
        connection.sock = self.shim.connect(port)
        connection.sock.settimeout(timeout_s)
        try:
            headers = {header["name"]: header["value"] for header in get.get("httpHeaders", [])}
            connection.request("GET", get.get("path", "/"), headers={"User-Agent": "kube-probe", **headers})
            status = connection.getresponse().status
        finally:
            connection.close()
        if not 200 <= status < 400:
            raise ProbeFailed(f"HTTP probe failed with statuscode: {status}")

    def _port(self, target: Object) -> int:
        wanted = target["port"]
        named = [port["containerPort"] for port in self.container.get("ports", []) if port.get("name") == wanted]
        return int(named[0] if named else wanted)
