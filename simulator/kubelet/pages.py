"""HTTP pages of pods that KWOK runs without a process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping, Sequence

from k8s.objects import Object, is_ready
from simulator.host.network import ClusterNetwork
from simulator.kubelet.devices import Allocation
from simulator.kubelet.pods import PodCatalogue
from simulator.kubelet.programs import Holder, Page
from simulator.world.nodes import hardware_of

_REQUEST_LIMIT = 8192


class Pages:
    """The pages of a cluster, served while their pods are ready."""

    def __init__(
        self,
        catalogue: PodCatalogue,
        network: ClusterNetwork,
        pods: Callable[[], Sequence[Object]],
        held: Callable[[], Mapping[str, Allocation]],
    ) -> None:
        self._catalogue, self._network, self._pods, self._held = catalogue, network, pods, held
        self._known: dict[str, tuple[Page, int] | None] = {}
        """Page and port by pod uid."""

    def sync(self, pods: Sequence[Object], nodes: Mapping[str, Object]) -> None:
        self._known = {uid: self._page(pod) for pod in pods for uid in [pod["metadata"]["uid"]]}
        served = {}
        for pod in pods:
            if (found := self._known[pod["metadata"]["uid"]]) and is_ready(pod):
                page, port = found
                if node := nodes.get(pod["spec"]["nodeName"]):
                    address = pod["status"].get("podIP", "")
                    served[(address, port)] = self._door(page, node)
        self._network.serve(served)

    def _page(self, pod: Object) -> tuple[Page, int] | None:
        uid = pod["metadata"]["uid"]
        return self._known[uid] if uid in self._known else self._catalogue.page(pod)

    def _door(self, page: Page, node: Object) -> Callable[[], socket.socket]:
        def connect() -> socket.socket:
            ours, theirs = socket.socketpair()
            threading.Thread(target=_answer, args=(ours, lambda: self._text(page, node)), daemon=True).start()
            return theirs

        return connect

    def _text(self, page: Page, node: Object) -> str:
        name, held = node["metadata"]["name"], self._held()
        here = [pod for pod in self._pods() if pod["spec"].get("nodeName") == name]
        holders = [Holder(pod, tuple(held.get(pod["metadata"]["uid"], {}).get("gpus", ()))) for pod in here]
        return page.text(hardware_of(node), [holder for holder in holders if holder.gpus])


def _answer(client: socket.socket, text: Callable[[], str]) -> None:
    with client:
        request = b""
        while b"\r\n\r\n" not in request:
            part = client.recv(_REQUEST_LIMIT) if len(request) < _REQUEST_LIMIT else b""
            if not part:
                return
            request += part
        body = text().encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len(body)}\r\n"
        client.sendall(f"{head}Connection: close\r\n\r\n".encode() + body)
