"""The lifecycle of a pod: volumes, init containers, restarts, end."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from k8s.objects import Object, holds
from simulator.kube.client import STRATEGIC_MERGE_PATCH, ApiError, KubeClient
from simulator.kubelet.context import ContainerContext
from simulator.kubelet.errors import VolumeNotReady
from simulator.kubelet.events import EventRecorder
from simulator.kubelet.probes import Prober
from simulator.kubelet.pulls import ImagePulls, Waiting
from simulator.kubelet.runner import Runnable, Script, Stop, run, termination_grace_s
from simulator.kubelet.status import ContainerState, now, pod_status

_log = logging.getLogger(__name__)
_FIRST_BACKOFF_S, _MAX_BACKOFF_S = 1.0, 30.0
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.5, 2.0
_REFRESH_S = 20.0
"""Seconds between updates of volumes (in kubelets, about a minute)."""
_MAX_TRIES = 240  # two minutes
_NOT_NOW = (VolumeNotReady, ApiError, httpx.HTTPError, OSError)
"""Errors after which a container waits, and the kubelet retries."""


@dataclass(frozen=True)
class PodServices:
    kube: KubeClient
    context: Callable[[Object, Object], ContainerContext]
    program: Callable[[Object], Runnable]
    serve: Callable[[str, ContainerContext, Runnable], None]
    """Makes the container's ports reachable at the pod's address."""
    unserve: Callable[[str], None]
    pulls: ImagePulls
    recorder: EventRecorder


class PodWorker:
    """Runs one pod in a thread. `stop` ends the containers and can delete the pod."""

    def __init__(self, services: PodServices, pod: Object, pod_ip: str, host_ip: str) -> None:
        self._services, self._pod, self._ip, self._host_ip = services, pod, pod_ip, host_ip
        spec = pod["spec"]
        self._policy: str = spec.get("restartPolicy", "Always")
        self._init = [ContainerState(c["name"], c["image"]) for c in spec.get("initContainers", [])]
        self._main = [ContainerState(c["name"], c["image"]) for c in spec["containers"]]
        self._stop_event = Stop()
        self._lock = threading.Lock()
        self._readiness = threading.Lock()
        self._conditions: list[Object] = []
        self._start_time = pod.get("status", {}).get("startTime") or now()
        self.delete_when_stopped = False
        self._thread = threading.Thread(target=self._run, name=f"pod-{pod['metadata']['name']}", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def ready(self) -> bool:
        return all(state.ready for state in self._main)

    def join(self) -> None:
        self._thread.join()

    def restore(self, pod: Object) -> None:
        """Reports the status again if the readiness in the API server is wrong."""
        if self.alive and holds(pod, "Ready") != self.ready:
            self._report()

    def stop(self, *, delete: bool) -> None:
        self.delete_when_stopped = delete
        self._stop_event.set()

    def lose(self) -> None:
        """Ends the pod immediately, because its node is down. Reports no status. Data that was not sent is lost."""
        self._stop_event.lost.set()
        self.stop(delete=False)

    def _run(self) -> None:
        self._report()
        spec = self._pod["spec"]
        succeeded = all(
            self._complete(container, state)
            for container, state in zip(spec.get("initContainers", []), self._init, strict=True)
        )
        threads = []
        if succeeded:
            pairs = zip(spec["containers"], self._main, strict=True)
            threads = [threading.Thread(target=self._complete, args=pair, daemon=True) for pair in pairs]
        for thread in threads:
            thread.start()
        self._await(threads)
        self._services.unserve(self._ip)
        if self.delete_when_stopped:
            self._report()  # a Job keeps a deleted pod (finalizer job-tracking) until the pod's exit is reported
            self._delete()

    def _await(self, containers: list[threading.Thread]) -> None:
        while running := [container for container in containers if container.is_alive()]:
            running[0].join(_REFRESH_S)
            if running[0].is_alive():
                with contextlib.suppress(*_NOT_NOW):  # the next round retries
                    self._services.context(self._pod, self._pod["spec"]["containers"][0]).volumes.refresh()

    def _complete(self, container: Object, state: ContainerState) -> bool:
        pause = 0.0
        while not self._stop_event.is_set():
            ctx = self._prepared(container, state)
            if ctx is None:
                return False
            program = self._services.program(container)
            if program is None and state in self._init:
                state.end(0)  # a stub succeeds, as in KWOK
                self._report()
                return True
            state.run()
            self._report()
            code = self._run_once(ctx, program, state)
            if not self._stop_event.lost.is_set():
                ctx.volumes.flush()
            if self._stop_event.is_set():
                if self.delete_when_stopped:
                    state.end(code)
                return False
            shows_log = code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
            state.end(code, ctx.logfile.end() if shows_log else "")
            self._report()
            if code == 0 and (self._policy != "Always" or state in self._init):
                return True
            if self._policy == "Never":
                return False
            if pause:  # the first restart is immediate, as in a kubelet
                state.wait("CrashLoopBackOff", f"back-off {pause:.0f}s restarting failed container={state.name}")
                self._report()
                self._stop_event.wait(pause)
            pause = min(pause * 2 or _FIRST_BACKOFF_S, _MAX_BACKOFF_S)
        return False

    def _run_once(self, ctx: ContainerContext, program: Runnable, state: ContainerState) -> int:
        ended = threading.Event()

        def ready(well: bool) -> None:
            with self._readiness:
                if ended.is_set():
                    return
                state.ready = well
            self._report()

        def started() -> None:
            self._services.serve(self._ip, ctx, program)
            if isinstance(program, Script):
                warn = functools.partial(self._services.recorder.warn, self._pod)
                grace_s = termination_grace_s(self._pod)
                Prober(ctx.container, program.shim(ctx), ended, grace_s, ready, warn).start()
            else:
                ready(True)

        try:
            return run(ctx, program, self._stop_event, started)
        finally:
            with self._readiness:
                ended.set()

    def _prepared(self, container: Object, state: ContainerState) -> ContainerContext | None:
        pause = _FIRST_PAUSE_S
        while not self._stop_event.is_set():
            ctx = self._services.context(self._pod, container)
            waiting = self._waiting(ctx)
            if waiting is None:
                return ctx
            if (state.reason, state.message) != (waiting.reason, waiting.message):
                state.wait(waiting.reason, waiting.message)
                self._report()
                self._services.recorder.waiting(self._pod, state.image, waiting)
            self._stop_event.wait(pause)
            pause = min(pause * 2, _LAST_PAUSE_S)
        return None

    def _waiting(self, ctx: ContainerContext) -> Waiting | None:
        """Returns what the container waits for, or None. Checks first volumes, then image, then environment."""
        spec = self._pod["spec"]
        containers = [*spec.get("initContainers", []), *spec["containers"]]
        names = {mount["name"]: None for c in containers for mount in c.get("volumeMounts", [])}
        for name in names:
            try:
                ctx.volumes.path(ctx.volume(name))
            except _NOT_NOW as error:
                text = str(error)
                prefix = "" if text.startswith("MountVolume.") else f'MountVolume.SetUp failed for volume "{name}" : '
                return Waiting("ContainerCreating", prefix + text)
        if waiting := self._services.pulls.waiting(self._pod, ctx.container):
            return waiting
        try:
            ctx.env()
            for mount in ctx.container.get("volumeMounts", []):
                ctx.source(mount)
        except _NOT_NOW as error:
            return Waiting("CreateContainerConfigError", str(error))
        return None

    def _report(self) -> None:
        with self._lock:
            times = (self._start_time, self._conditions)
            status = pod_status(self._init, self._main, self._policy, self._ip, self._host_ip, *times)
            self._conditions = status["conditions"]
            metadata = self._pod["metadata"]
            body = {"metadata": {"uid": metadata["uid"]}, "status": status}
            # A strategic merge keeps conditions of controllers, such as DisruptionTarget.
            options: Any = {"subresource": "status", "content_type": STRATEGIC_MERGE_PATCH}
            self._insist(
                lambda: self._services.kube.patch("v1", "Pod", metadata["name"], metadata["namespace"], body, **options)
            )

    def _delete(self) -> None:
        metadata = self._pod["metadata"]
        self._insist(
            lambda: self._services.kube.delete("v1", "Pod", metadata["name"], metadata["namespace"], grace_seconds=0)
        )

    def _insist(self, call: Callable[[], Object]) -> None:
        """Retries while the API server or etcd restarts. Ignores a pod that was deleted or replaced."""
        refusal: Exception | None = None
        for _ in range(_MAX_TRIES):
            try:
                call()
            except ApiError as error:
                refusal = error
                if error.not_found or error.conflict:
                    return
                if not error.passing:
                    break
            except httpx.TransportError as error:
                refusal = error
            else:
                return
            time.sleep(0.5)
        _log.error("pod %s: its status cannot be reported: %s", self._pod["metadata"]["name"], refusal)
