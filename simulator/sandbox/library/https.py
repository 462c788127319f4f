"""HTTPS through the uplink, a separate module because its imports are slow and rarely needed."""

from __future__ import annotations

import http.client
import ssl

from simulator.sandbox.library import uplink_client


class HttpsConnection(http.client.HTTPSConnection):
    """A connection to a server outside of the sandbox."""

    def connect(self) -> None:
        context = ssl.create_default_context(cafile=str(uplink_client.FOLDER / uplink_client.AUTHORITIES))
        plain = uplink_client.connect(self.host, self.port, self.timeout or 60)
        self.sock = context.wrap_socket(plain, server_hostname=self.host)
