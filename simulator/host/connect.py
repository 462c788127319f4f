"""Functions for CONNECT and plain HTTP, which the proxies of the simulator share."""

from __future__ import annotations

import base64
import binascii
import re
import socket
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from simulator.host.relay import relay

_CHUNK = 65536
_HEADER_LIMIT = 8192
_DIAL_TIMEOUT_S = 5
_OUTSIDE_TIMEOUT_S = 30
_PLAIN = re.compile(r"(?i)http://(?P<host>\[[\da-f:.]+\]|[^/:@\[\]?]+)(?::(?P<port>\d{1,5}))?(?P<path>/.*)?")

Address = tuple[str, int]


@dataclass(frozen=True)
class Target:
    """A client's request. `user` is the user name in the client's proxy URL."""

    host: str
    port: int
    user: str = ""
    plain: bytes = b""
    """The part of a plain HTTP request that was read, rewritten for the server. Empty for CONNECT."""


def read_request(client: socket.socket, *, forwards: bool = False) -> Target | None:
    """Reads a CONNECT or (if `forwards`) plain HTTP request. Returns None if the request is incomplete or refused."""
    request = b""
    while b"\r\n\r\n" not in request:
        part = client.recv(_CHUNK) if len(request) < _HEADER_LIMIT else b""
        if not part:
            return None
        request += part
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, *_ = (*first.split(" "), "")
    host, _, port = target.rpartition(":")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    user = _user(headers.get("proxy-authorization", ""))
    if method == "CONNECT" and port.isdecimal():
        return Target(host.strip("[]"), int(port), user)
    if forwards and (there := _PLAIN.fullmatch(target)):
        kept = [line for line in lines if not line.lower().startswith(("proxy-", "connection:"))]
        own = "\r\n".join([f"{method} {there['path'] or '/'} HTTP/1.1", *kept, "Connection: close", "", ""])
        return Target(there["host"].strip("[]"), int(there["port"] or 80), user, own.encode("latin-1") + body)
    refuse(client, f"Only CONNECT <host>:<port> {'and http://<host>/ are' if forwards else 'is'} served", status=405)
    return None


def refuse(client: socket.socket, why: str, status: int = 502) -> None:
    """Sends an error response. `why` is the reason phrase, which clients show."""
    client.sendall(f"HTTP/1.1 {status} {why}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())


def dial(port: int) -> socket.socket:
    """Connects to a server on 127.0.0.1. Raises OSError."""
    upstream = socket.create_connection(("127.0.0.1", port), timeout=_DIAL_TIMEOUT_S)
    upstream.settimeout(None)
    return upstream


def dial_outside(address: Address, by: str) -> socket.socket:
    upstream = by_proxy(address, by) if by else socket.create_connection(address, timeout=_OUTSIDE_TIMEOUT_S)
    upstream.settimeout(None)
    return upstream


def join(client: socket.socket, upstream: socket.socket, plain: bytes = b"") -> None:
    """Sends the plain HTTP request or confirms CONNECT, then copies until both sides have ended."""
    if plain:
        upstream.sendall(plain)
    else:
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    relay(client, upstream)


def by_proxy(address: Address, by: str) -> socket.socket:
    """Connects through the proxy at this URL. Raises OSError with the proxy's message."""
    host, port = address
    proxy = urlsplit(by if "://" in by else f"http://{by}")
    if proxy.scheme != "http":
        raise OSError(f"the proxy {proxy.scheme}://{proxy.hostname} is not supported: use a proxy with http://")
    upstream = socket.create_connection((proxy.hostname or "", proxy.port or 80), timeout=_OUTSIDE_TIMEOUT_S)
    login = ""
    if proxy.username:
        plain = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        login = f"Proxy-Authorization: Basic {base64.b64encode(plain.encode()).decode()}\r\n"
    upstream.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{login}\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:  # byte by byte, to leave the server's data in the socket
        part = upstream.recv(1)
        if not part or len(answer) > _HEADER_LIMIT:
            break
        answer += part
    if answer.split(b" ", 2)[1:2] != [b"200"]:
        upstream.close()
        raise OSError(answer.decode("latin-1").partition("\r\n")[0].partition(" ")[2] or "the proxy hung up")
    return upstream


def _user(authorization: str) -> str:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return unquote(base64.b64decode(encoded).decode().partition(":")[0])
    except (binascii.Error, UnicodeDecodeError):
        return ""
