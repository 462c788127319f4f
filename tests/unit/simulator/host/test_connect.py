"""CONNECT as proxies of the simulator read it, and as they speak it to the user's own."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from simulator.host import connect
from simulator.host.connect import Wanted

LOGIN = base64.b64encode(b"rg%2Bai:").decode()


def exchange(request: bytes, *, forwards: bool = False) -> tuple[Wanted | None, bytes]:
    """What was understood of a request, and what was answered at once."""
    client, server = socket.socketpair()
    with client, server:
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        wanted = connect.asked(server, forwards=forwards)
        server.shutdown(socket.SHUT_WR)
        return wanted, client.recv(1024)


@pytest.mark.parametrize(
    ("request_", "wanted"),
    [
        (b"CONNECT a.azmk8s.io:443 HTTP/1.1\r\nHost: a\r\n\r\n", Wanted("a.azmk8s.io", 443)),
        (b"CONNECT [::1]:80 HTTP/1.1\r\n\r\n", Wanted("::1", 80)),
        (f"CONNECT a:1 HTTP/1.1\r\nProxy-Authorization: Basic {LOGIN}\r\n\r\n".encode(), Wanted("a", 1, "rg+ai")),
        (b"CONNECT a:1 HTTP/1.1\r\nproxy-authorization: Bearer x\r\n\r\n", Wanted("a", 1)),
        (b"CONNECT a:1 HTTP/1.1\r\nproxy-authorization: Basic ?\r\n\r\n", Wanted("a", 1)),
    ],
)
def test_a_client_names_host_port_and_user(request_: bytes, wanted: Wanted) -> None:
    assert exchange(request_) == (wanted, b"")


@pytest.mark.parametrize("request_", [b"", b"CONNECT a:1 HTTP/1.1\r\n", b"CONNECT " + b"a" * 10_000])
def test_a_request_that_does_not_end_is_none(request_: bytes) -> None:
    assert exchange(request_) == (None, b"")


def test_a_request_of_plain_http_becomes_one_to_its_server() -> None:
    request = (
        b"POST http://a.example:8080/b?c=d HTTP/1.1\r\nHost: a.example:8080\r\nProxy-Connection: keep-alive\r\n"
        b"Content-Length: 2\r\nConnection: keep-alive\r\n\r\nhi"
    )
    own = b"POST /b?c=d HTTP/1.1\r\nHost: a.example:8080\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
    assert exchange(request, forwards=True) == (Wanted("a.example", 8080, plain=own), b"")
    wanted, _ = exchange(b"GET http://[::1] HTTP/1.1\r\n\r\n", forwards=True)
    assert wanted == Wanted("::1", 80, plain=b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")


@pytest.mark.parametrize("target", [b"/", b"ftp://a/", b"http://", b"http://a:b/", b"http://[::1/", b"https://a/", b""])
def test_other_targets_than_those_of_plain_http_are_refused(target: bytes) -> None:
    wanted, answer = exchange(b"GET " + target + b" HTTP/1.1\r\n\r\n", forwards=True)
    assert (wanted, answer.split(b" ")[1]) == (None, b"405")


@pytest.fixture
def served() -> Iterator[Callable[[bytes], tuple[int, list[bytes]]]]:
    """Starts a server that answers its one client so, and remembers what that has said."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def start(answer: bytes) -> tuple[int, list[bytes]]:
            said: list[bytes] = []

            def serve() -> None:
                client, _ = listener.accept()
                with client:
                    said.append(client.recv(1024))
                    client.sendall(answer)

            threading.Thread(target=serve, daemon=True).start()
            return listener.getsockname()[1], said

        yield start


def test_the_users_own_proxy_is_asked_with_its_login(served: Callable[[bytes], tuple[int, list[bytes]]]) -> None:
    """What follows the answer is the server's, to the byte."""
    port, said = served(b"HTTP/1.1 200 Fine\r\nVia: x\r\n\r\nhello")
    with connect.dial_outside(("pypi.org", 443), f"http://me:pass@127.0.0.1:{port}") as upstream:
        assert upstream.recv(16) == b"hello"
    assert said[0].startswith(b"CONNECT pypi.org:443 HTTP/1.1\r\n")
    assert base64.b64encode(b"me:pass") in said[0]


def test_what_that_proxy_refuses_is_told(served: Callable[[bytes], tuple[int, list[bytes]]]) -> None:
    port, _ = served(b"HTTP/1.1 403 Not for you\r\n\r\n")
    with pytest.raises(OSError, match="403 Not for you"):
        connect.dial_outside(("pypi.org", 443), f"http://127.0.0.1:{port}")


def test_without_one_the_world_is_reached_directly(served: Callable[[bytes], tuple[int, list[bytes]]]) -> None:
    port, _ = served(b"hello")
    with connect.dial_outside(("127.0.0.1", port), "") as upstream:
        upstream.sendall(b"x")
        assert upstream.recv(16) == b"hello"
