"""Copies between two sockets. Standard library only: sandboxes have it too."""

from __future__ import annotations

import selectors
import socket
import ssl

_CHUNK = 2**16


def relay(one: socket.socket, other: socket.socket) -> None:
    """Copies both ways until both sides have ended; the end of one is told to the other. The caller closes them.

    In one thread, since a TLS socket may not be read and written at the same time.
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
    """Passes on what is there; False when there will be no more."""
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
        except OSError:  # nobody listens any more
            return False
        if not (isinstance(source, ssl.SSLSocket) and source.pending()):
            return True


def _half_close(sink: socket.socket) -> bool:
    """False where that cannot be, as with TLS: the whole connection is over."""
    if isinstance(sink, ssl.SSLSocket):
        return False
    try:
        sink.shutdown(socket.SHUT_WR)
    except OSError:  # it is closed already
        return False
    return True
