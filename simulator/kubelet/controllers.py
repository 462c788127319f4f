"""Runs operators and agents as threads of the simulator while their pods are Ready."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Mapping, Sequence

from k8s.objects import Object, is_ready
from simulator.kubelet.context import ContainerContext
from simulator.kubelet.pods import PodCatalogue
from simulator.kubelet.programs import Controller

_PAUSE_S = 1.0


class Controllers:
    def __init__(self, catalogue: PodCatalogue, context: Callable[[Object, Object], ContainerContext]) -> None:
        self._catalogue, self._context = catalogue, context
        self._running: dict[tuple[str, str], threading.Event] = {}

    def sync(self, pods: Sequence[Object], nodes: Mapping[str, Object]) -> None:
        wanted = {}
        for pod in pods:
            if pod["spec"]["nodeName"] in nodes and is_ready(pod) and not self._catalogue.runs_here(pod):
                for container in pod["spec"]["containers"]:
                    if controller := self._catalogue.controller(container):
                        wanted[(pod["metadata"]["uid"], container["name"])] = (pod, container, controller)
        for key in [key for key in self._running if key not in wanted]:
            self._running.pop(key).set()
        for key, (pod, container, controller) in wanted.items():
            if key not in self._running:
                self._running[key] = threading.Event()
                args = (controller, self._context(pod, container), self._running[key])
                threading.Thread(target=_run, args=args, name=f"controller-{container['name']}", daemon=True).start()

    def stop(self) -> None:
        for event in self._running.values():
            event.set()
        self._running.clear()


def _run(controller: Controller, ctx: ContainerContext, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            controller.run(ctx, stop)
        except Exception:  # noqa: BLE001 - like a crashed operator, the controller logs the error and restarts
            ctx.log(traceback.format_exc())
            stop.wait(_PAUSE_S)
