"""How simulated Azure serves: HTTPS on 127.0.0.1, a thread for each connection."""

from __future__ import annotations

import logging
import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from simulator.azure import trust
from simulator.host.certificates import Authority

_log = logging.getLogger(__name__)


class HttpsServer(ThreadingHTTPServer):
    """Port 0 takes a free one. Raises OSError when the port is taken."""

    daemon_threads = True

    def __init__(
        self, port: int, authority: Authority, handler: type[BaseHTTPRequestHandler], certificate: str = trust.SERVER
    ) -> None:
        super().__init__(("127.0.0.1", port), handler)
        own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        own.load_cert_chain(authority.path(certificate, "crt"), authority.path(certificate, "key"))
        self.socket = own.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, or one that does not trust the certificate, is no fault of the simulator."""
        _log.debug("request of %s ended", client_address, exc_info=True)
