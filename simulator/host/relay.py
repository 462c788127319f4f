"""Copies between two sockets. Uses the standard library only, because sandboxes use it too."""

from __future__ import annotations

import selectors
import socket
import ssl

_CHUNK = 2**16


def relay(one: socket.socket, other: socket.socket) -> None:
    """Copies both ways until both sides have closed, and passes on each close. The caller closes the sockets.

    Uses one thread, because a TLS socket must not be read and written at the same time.
    """
    way = {one: other, other: one}
    with selectors.DefaultSelector() as selector:
        for source in way:
            selector.register(source, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                source = next(side for side in way if side is key.fileobj)
                if not _copy(source, way[source]):
                    selector.unregister(source)
                    if not _half_close(way[source]):
                        return


def _copy(source: socket.socket, sink: socket.socket) -> bool:
    while True:
        source.setblocking(False)
        try:
            data = source.recv(_CHUNK)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:  # the connection broke
            return False
        finally:
            source.setblocking(True)
        if not data:
            return False
        try:
            sink.sendall(data)
        except OSError:  # the other side has closed
            return False
        if not (isinstance(source, ssl.SSLSocket) and source.pending()):
            return True


def _half_close(sink: socket.socket) -> bool:
    """Closes the sending side. Returns False if this is not possible (TLS), which ends the connection."""
    if isinstance(sink, ssl.SSLSocket):
        return False
    try:
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return False
    return True
