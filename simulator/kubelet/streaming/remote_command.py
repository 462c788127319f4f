"""`kubectl exec`: a command's standard streams over a SPDY connection.

Source: kubernetes/kubernetes, pkg/kubelet/cri/streaming/remotecommand (protocol v4.channel.k8s.io).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import queue
import struct
import termios
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from simulator.kubelet.shim_client import Shim, ShimError
from simulator.kubelet.streaming.spdy import Connection, Stream

PROTOCOL = "v4.channel.k8s.io"
_CHUNK = 2**15
_STREAMS_S = 30
_OUTPUT_S = 5
"""Seconds to read output after the command's end, from background processes."""


@dataclass(frozen=True)
class Command:
    argv: tuple[str, ...]
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    terminal: bool = False

    @property
    def streams(self) -> set[str]:
        """The client's streams. A terminal has only one output stream."""
        wanted = {"stdin": self.stdin, "stdout": self.stdout, "stderr": self.stderr and not self.terminal}
        return {"error"} | {name for name, on in wanted.items() if on} | ({"resize"} if self.terminal else set())


def serve(connection: Connection, command: Command, find: Callable[[], Shim]) -> None:
    """Runs the command and sends its result. Returns when the client is gone. `find` may raise ShimError."""
    opened: queue.SimpleQueue[Stream] = queue.SimpleQueue()
    reader = threading.Thread(target=connection.serve, args=(opened.put,), daemon=True)
    reader.start()
    streams: dict[str, Stream] = {}
    while set(streams) < command.streams:
        try:
            stream = opened.get(timeout=_STREAMS_S)
        except queue.Empty:  # the client opened too few streams
            return
        streams[stream.headers["streamtype"]] = stream
    with contextlib.suppress(OSError):  # the client is gone
        streams["error"].write(json.dumps(_status(command, find, streams)).encode())
        for stream in streams.values():
            stream.close()
        connection.go_away()
    reader.join(_STREAMS_S)


def _status(command: Command, find: Callable[[], Shim], streams: dict[str, Stream]) -> dict[str, Any]:
    run = _in_terminal if command.terminal else _with_pipes
    try:
        code = run(command, find(), streams)
    except ShimError as error:
        message = f"error executing command in container: {error}"
        return {"status": "Failure", "reason": "InternalError", "message": message, "code": 500}
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _with_pipes(command: Command, shim: Shim, streams: dict[str, Stream]) -> int:
    null = os.open(os.devnull, os.O_RDWR)
    theirs, outputs = {"stdin": null, "stdout": null, "stderr": null}, []
    for name in streams.keys() & theirs.keys():
        reading, writing = os.pipe()
        if name == "stdin":
            theirs[name] = reading
            threading.Thread(target=_feed, args=(streams[name], writing), daemon=True).start()
        else:
            theirs[name] = writing
            outputs.append(threading.Thread(target=_drain, args=(reading, streams[name]), daemon=True))
    for thread in outputs:
        thread.start()
    try:
        return shim.run(command.argv, list(theirs.values()))
    finally:
        for file in set(theirs.values()) | {null}:
            os.close(file)
        for thread in outputs:
            thread.join(_OUTPUT_S)


def _in_terminal(command: Command, shim: Shim, streams: dict[str, Stream]) -> int:
    ours, theirs = pty.openpty()
    threading.Thread(target=_resize, args=(streams["resize"], os.dup(ours)), daemon=True).start()
    if "stdin" in streams:
        threading.Thread(target=_feed, args=(streams["stdin"], os.dup(ours)), daemon=True).start()
    output = threading.Thread(target=_drain, args=(ours, streams.get("stdout")), daemon=True)
    output.start()
    try:
        return shim.run(command.argv, [theirs] * 3, terminal=True)
    finally:
        os.close(theirs)
        output.join(_OUTPUT_S)


def _feed(stream: Stream, file: int) -> None:
    with os.fdopen(file, "wb", buffering=0) as sink, contextlib.suppress(OSError):
        for data in stream.chunks():
            sink.write(data)


def _drain(file: int, stream: Stream | None) -> None:
    with os.fdopen(file, "rb", buffering=0) as source:
        for data in _parts(source.fileno()):
            if stream is not None:
                with contextlib.suppress(OSError):  # the client is gone, the command continues
                    stream.write(data)


def _parts(file: int) -> Iterator[bytes]:
    with contextlib.suppress(OSError):  # reading a closed terminal is an error
        while data := os.read(file, _CHUNK):
            yield data


def _resize(stream: Stream, terminal: int) -> None:
    """Sets the terminal's size, which the client sends as JSON at the start and after each change."""
    with os.fdopen(terminal, "wb", buffering=0):
        for data in stream.chunks():
            for line in data.splitlines():
                size = json.loads(line)
                fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size["Height"], size["Width"], 0, 0))
