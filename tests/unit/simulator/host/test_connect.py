from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from simulator.host import connect
from simulator.host.connect import Target

LOGIN = base64.b64encode(b"rg%2Bai:").decode()


def exchange(request: bytes, *, forwards: bool = False) -> tuple[Target | None, bytes]:
    client, server = socket.socketpair()
    with client, server:
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        target = connect.read_request(server, forwards=forwards)
        server.shutdown(socket.SHUT_WR)
        return target, client.recv(1024)


@pytest.mark.parametrize(
    ("request_", "target"),
    [
        (b"CONNECT a.azmk8s.io:443 HTTP/1.1\r\nHost: a\r\n\r\n", Target("a.azmk8s.io", 443)),
        (b"CONNECT [::1]:80 HTTP/1.1\r\n\r\n", Target("::1", 80)),
        (f"CONNECT a:1 HTTP/1.1\r\nProxy-Authorization: Basic {LOGIN}\r\n\r\n".encode(), Target("a", 1, "rg+ai")),
        (b"CONNECT a:1 HTTP/1.1\r\nproxy-authorization: Bearer x\r\n\r\n", Target("a", 1)),
        (b"CONNECT a:1 HTTP/1.1\r\nproxy-authorization: Basic ?\r\n\r\n", Target("a", 1)),
    ],
)
def test_reads_host_port_and_user(request_: bytes, target: Target) -> None:
    assert exchange(request_) == (target, b"")


@pytest.mark.parametrize("request_", [b"", b"CONNECT a:1 HTTP/1.1\r\n", b"CONNECT " + b"a" * 10_000])
def test_an_incomplete_request_has_no_target(request_: bytes) -> None:
    assert exchange(request_) == (None, b"")


def test_rewrites_a_plain_http_request_for_its_server() -> None:
    request = (
        b"POST http://a.example:8080/b?c=d HTTP/1.1\r\nHost: a.example:8080\r\nProxy-Connection: keep-alive\r\n"
        b"Content-Length: 2\r\nConnection: keep-alive\r\n\r\nhi"
    )
    own = b"POST /b?c=d HTTP/1.1\r\nHost: a.example:8080\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
    assert exchange(request, forwards=True) == (Target("a.example", 8080, plain=own), b"")
    target, _ = exchange(b"GET http://[::1] HTTP/1.1\r\n\r\n", forwards=True)
    assert target == Target("::1", 80, plain=b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")


@pytest.mark.parametrize("target", [b"/", b"ftp://a/", b"http://", b"http://a:b/", b"http://[::1/", b"https://a/", b""])
def test_rejects_targets_that_are_not_plain_http(target: bytes) -> None:
    found, answer = exchange(b"GET " + target + b" HTTP/1.1\r\n\r\n", forwards=True)
    assert (found, answer.split(b" ")[1]) == (None, b"405")


@pytest.fixture
def served() -> Iterator[Callable[[bytes], tuple[int, list[bytes]]]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def start(answer: bytes) -> tuple[int, list[bytes]]:
            received: list[bytes] = []

            def serve() -> None:
                client, _ = listener.accept()
                with client:
                    received.append(client.recv(1024))
                    client.sendall(answer)

            threading.Thread(target=serve, daemon=True).start()
            return listener.getsockname()[1], received

        yield start


def test_connects_through_the_users_proxy_with_its_login(served: Callable[[bytes], tuple[int, list[bytes]]]) -> None:
    """Bytes after the proxy's answer belong to the server."""
    port, received = served(b"HTTP/1.1 200 Fine\r\nVia: x\r\n\r\nhello")
    with connect.dial_outside(("pypi.org", 443), f"http://me:pass@127.0.0.1:{port}") as upstream:
        assert upstream.recv(16) == b"hello"
    assert received[0].startswith(b"CONNECT pypi.org:443 HTTP/1.1\r\n")
    assert base64.b64encode(b"me:pass") in received[0]


def test_the_error_has_the_proxys_reason(served: Callable[[bytes], tuple[int, list[bytes]]]) -> None:
    port, _ = served(b"HTTP/1.1 403 Not for you\r\n\r\n")
    with pytest.raises(OSError, match="403 Not for you"):
        connect.dial_outside(("pypi.org", 443), f"http://127.0.0.1:{port}")


def test_connects_directly_without_a_proxy(served: Callable[[bytes], tuple[int, list[bytes]]]) -> None:
    port, _ = served(b"hello")
    with connect.dial_outside(("127.0.0.1", port), "") as upstream:
        upstream.sendall(b"x")
        assert upstream.recv(16) == b"hello"
