"""Azurite on 127.0.0.1, which stores the blobs of all storage accounts on disk."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from simulator.azure import trust
from simulator.host import paths, ports
from simulator.host.processes import Process, Supervisor

_READY_TIMEOUT_S = 120  # a start takes two seconds on an idle machine


class Azurite:
    """The Azurite process. It reads accounts only at the start, so a change of accounts restarts it."""

    def __init__(self) -> None:
        self.authority = trust.authority()
        self.port = 0  # new at each start, because another program may take the old one
        self._folder = paths.home().resolve() / "blobs"
        self._accounts: dict[str, list[str]] = {}
        self._supervisor: Supervisor | None = None
        self._lock = threading.Lock()
        self._changing = threading.Lock()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca_file(self) -> Path:
        return Path(self.authority.path("ca", "crt"))

    def key(self, account: str) -> str:
        """Returns a served account's first key. Waits while Azurite starts. Raises KeyError."""
        with self._lock:
            return self._accounts[account][0]

    def set_accounts(self, accounts: Callable[[], Mapping[str, list[str]]]) -> None:
        """Serves these accounts. Returns when Azurite is ready. Raises RuntimeError with the end of the log."""
        with self._changing:
            # Not inside `_lock` (deadlock): `accounts` takes the store's lock, and callers of `key` may hold it.
            wanted = dict(accounts())
            with self._lock:
                if wanted == self._accounts:
                    return
                self._end()
                if wanted:
                    self._supervisor = Supervisor()
                    self._await(self._supervisor.start(self._process(wanted)))
                self._accounts = wanted

    def stop(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        self._accounts = {}
        if self._supervisor is not None:
            self._supervisor.stop()
            self._supervisor = None

    def _process(self, wanted: Mapping[str, list[str]]) -> Process:
        self.port = ports.free(set())
        data = self._folder / "data"
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        options = {
            "--blobHost": "127.0.0.1",
            "--blobPort": str(self.port),
            "--location": str(data),
            "--cert": self.authority.path(trust.SERVER, "crt"),
            "--key": self.authority.path(trust.SERVER, "key"),
            "--oauth": "basic",  # checks a token's audience, issuer and times
        }
        flags = ["--skipApiVersionCheck", "--disableTelemetry", "--silent"]
        argv = [str(paths.tool("azurite-blob")), *(part for option in options.items() for part in option), *flags]
        accounts = ";".join(":".join((name, *keys)) for name, keys in sorted(wanted.items()))
        return Process("azurite", argv, self._folder / "azurite.log", {"AZURITE_ACCOUNTS": accounts})

    def _await(self, process: Process) -> None:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while not _listens(self.port):
            if time.monotonic() > deadline or process.restarts > 3:
                self._end()
                raise RuntimeError(f"Azurite did not start. The end of its log:\n{process.tail()}")
            time.sleep(0.05)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
