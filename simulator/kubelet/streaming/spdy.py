"""The server side of SPDY/3.1 for Kubernetes' streams, without flow control and pushed streams.

Sources: draft-mbelshe-httpbis-spdy-00, sections 2.2 to 2.6; github.com/moby/spdystream, which the API server uses.
"""

from __future__ import annotations

import functools
import queue
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import yaml

_VERSION = 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_FIN = 0x01
_CONTROL = 0x80000000
_MAX_DATA = 2**15


@functools.cache
def _dictionary() -> bytes:
    known = yaml.safe_load(Path(__file__).with_name("spdy_dictionary.yaml").read_text(encoding="utf-8"))
    words = b"".join(struct.pack(">I", len(word)) + word.encode() for word in known["words"])
    return words + str(known["text"]).encode()


class Stream:
    """A stream that the client has opened in a connection."""

    def __init__(self, connection: Connection, number: int, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self._connection, self._number = connection, number
        self._received: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def chunks(self) -> Iterator[bytes]:
        """Yields the client's data until the stream ends or the client is gone. Can be called only once."""
        while (data := self._received.get()) is not None:
            yield data

    def write(self, data: bytes) -> None:
        """Sends data. Raises OSError if the client is gone."""
        for start in range(0, len(data), _MAX_DATA):
            self._connection.send_data(self._number, data[start : start + _MAX_DATA])

    def close(self) -> None:
        """Ends the stream's output. Raises OSError if the client is gone."""
        self._connection.send_data(self._number, b"", _FIN)

    def take(self, data: bytes | None) -> None:
        """Gets data from the connection, or None when the stream ends."""
        self._received.put(data)


class Connection:
    """The connection of a client. `serve` reads from it; any thread can write."""

    def __init__(self, transport: socket.socket) -> None:
        self._transport = transport
        self._reader = transport.makefile("rb")
        self._writing = threading.Lock()
        self._streams: dict[int, Stream] = {}
        self._decompress = zlib.decompressobj(zdict=_dictionary())
        self._compress = zlib.compressobj(zdict=_dictionary())

    def serve(self, opened: Callable[[Stream], None]) -> None:
        """Calls `opened` with each new stream until the client is gone. Then ends all streams."""
        try:
            while True:
                head, rest = struct.unpack(">II", self._read(8))
                flags, payload = rest >> 24, self._read(rest & 0xFFFFFF)
                if not head & _CONTROL:
                    self._data(head, payload, flags)
                else:
                    self._control(head & 0xFFFF, flags, payload, opened)
        except (OSError, EOFError):  # the client left, possibly within a frame
            pass
        finally:
            for stream in self._streams.values():
                stream.take(None)

    def go_away(self) -> None:
        """Announces the end of all streams. Raises OSError if the client is gone."""
        self._send(struct.pack(">IIII", _CONTROL | _VERSION << 16 | _GOAWAY, 8, max(self._streams, default=0), 0))

    def send_data(self, stream: int, data: bytes, flags: int = 0) -> None:
        """Sends a frame of a stream. Raises OSError."""
        self._send(struct.pack(">II", stream, flags << 24 | len(data)) + data)

    def _read(self, count: int) -> bytes:
        data = self._reader.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def _data(self, number: int, data: bytes, flags: int) -> None:
        if stream := self._streams.get(number):
            if data:
                stream.take(data)
            if flags & _FIN:
                stream.take(None)

    def _control(self, kind: int, flags: int, payload: bytes, opened: Callable[[Stream], None]) -> None:
        if kind == _SYN_STREAM:
            number = struct.unpack(">I", payload[:4])[0]
            stream = self._streams[number] = Stream(self, number, self._headers(payload[10:]))
            if flags & _FIN:
                stream.take(None)
            self._reply(number)
            opened(stream)
        elif kind == _PING:
            self._send(struct.pack(">II", _CONTROL | _VERSION << 16 | _PING, len(payload)) + payload)
        elif kind == _RST_STREAM:
            if stream_reset := self._streams.get(struct.unpack(">I", payload[:4])[0]):
                stream_reset.take(None)
        elif kind == _GOAWAY:
            raise EOFError

    def _headers(self, block: bytes) -> dict[str, str]:
        """Parses the number of pairs, then each text after its length."""
        plain = self._decompress.decompress(block)
        position, texts = 4, []
        for _ in range(2 * struct.unpack(">I", plain[:4])[0]):
            (length,) = struct.unpack(">I", plain[position : position + 4])
            texts.append(plain[position + 4 : position + 4 + length].decode())
            position += 4 + length
        return dict(zip(texts[::2], texts[1::2], strict=True))

    def _reply(self, number: int) -> None:
        with self._writing:
            block = self._compress.compress(struct.pack(">I", 0)) + self._compress.flush(zlib.Z_SYNC_FLUSH)
            head = struct.pack(">III", _CONTROL | _VERSION << 16 | _SYN_REPLY, 4 + len(block), number)
            self._transport.sendall(head + block)

    def _send(self, frame: bytes) -> None:
        with self._writing:
            self._transport.sendall(frame)
