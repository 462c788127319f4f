"""The client of a sandbox's shim (`simulator/sandbox/commands/shim.py`)."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_REPLY_BYTES = 4096
_START_S, _POLL_S = 10, 0.1


class ShimError(RuntimeError):
    """A failed request to a container, with the reason."""


def run_folder(pod_folder: Path, container: str) -> Path:
    return pod_folder / "run" / container


@dataclass(frozen=True)
class Shim:
    """The client for the sandbox with this run folder."""

    run_dir: Path

    @classmethod
    def of(cls, pod_folder: Path, container: str) -> Shim:
        return cls(run_folder(pod_folder, container))

    def connect(self, port: int) -> socket.socket:
        """Connects to a port on the container's 127.0.0.1. Raises ShimError."""
        reply, files = self._ask({"connect": port}, [])
        if not files:
            raise ShimError(str(reply["error"]))
        return socket.socket(fileno=files[0])

    def dial(self, port: int) -> socket.socket:
        """Works like `connect`, for the simulated network. Raises ConnectionRefusedError."""
        try:
            return self.connect(port)
        except ShimError as error:
            raise ConnectionRefusedError(str(error)) from error

    def run(self, argv: Sequence[str], files: Sequence[int], *, terminal: bool = False) -> int:
        """Runs a command in the container with three standard streams. Returns its exit code. Raises ShimError."""
        reply, _ = self._ask({"run": list(argv), "terminal": terminal}, files)
        if "error" in reply:
            raise ShimError(str(reply["error"]))
        return int(str(reply["code"]))

    def signal(self, number: int) -> None:
        """Sends a signal to the container's command. Raises ShimError."""
        self._ask({"signal": number}, [])

    def _ask(self, request: dict[str, object], files: Sequence[int]) -> tuple[dict[str, object], list[int]]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            try:
                self._reach(connection)
                socket.send_fds(connection, [json.dumps(request).encode()], list(files))
                reply, received, _, _ = socket.recv_fds(connection, _REPLY_BYTES, 1)
            except OSError as error:
                raise ShimError(f"the container does not run ({error.strerror})") from error
        if not reply:
            raise ShimError("the container has ended")
        return json.loads(reply), received

    def _reach(self, connection: socket.socket) -> None:
        deadline = time.monotonic() + _START_S
        while True:
            try:
                self._connect(connection)
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)
            else:
                return

    def _connect(self, connection: socket.socket) -> None:
        # Uses a file descriptor, because addresses of Unix sockets are limited to 107 bytes.
        folder = os.open(self.run_dir / "pod", os.O_PATH | os.O_DIRECTORY)
        try:
            connection.connect(f"/proc/self/fd/{folder}/shim")
        finally:
            os.close(folder)
