"""The certificate authority of simulated Azure's services, and the CA bundle of clients.

The authority's folder also contains the key with which simulated Entra signs tokens.
"""

from __future__ import annotations

import fcntl
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import certifi
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from simulator.azure import domains
from simulator.host import files, paths
from simulator.host.certificates import Authority, rsa_key

SERVER = "server"
FRONT = "front"
"""Resource Manager's certificate, also for Microsoft's hosts."""
STORAGE = "storage"
REGISTRY = "registry"
"""The registries' certificate, except for data endpoints, which are not served."""
_ACCOUNTS = (f"*.{domains.BLOBS}", f"*.{domains.DFS}")
_REGISTRIES = f"*.{domains.REGISTRIES}"
_HERE = ("127.0.0.1", "localhost")
_VARIABLES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")


def authority(home: Path | None = None) -> Authority:
    with _own(home) as folder:
        made = Authority(folder, "simulated-azure-ca")
        made.issue(SERVER, "127.0.0.1", hosts=_HERE, server=True)
        made.issue(FRONT, "127.0.0.1", hosts=(*_HERE, *domains.SERVED), server=True)
        made.issue(STORAGE, _ACCOUNTS[0], hosts=(*_HERE, *_ACCOUNTS), server=True)
        made.issue(REGISTRY, _REGISTRIES, hosts=(*_HERE, _REGISTRIES), server=True)
    return made


def token_key(home: Path | None = None) -> RSAPrivateKey:
    with _own(home) as folder:
        return rsa_key(folder / "tokens.key")


def bundle() -> Path:
    """Returns the CA bundle of clients (PEM): the authorities that this machine trusts plus the simulator's own."""
    own = _folder() / "bundle.pem"
    if str(own) in (os.environ.get(name) for name in _VARIABLES) and own.exists():
        return own  # this environment already uses the bundle
    files.replace(own, _trusted_here().read_text() + "\n" + authority().pem)
    return own


def client(home: Path | None = None) -> ssl.SSLContext:
    """Returns a TLS context that trusts only simulated Azure."""
    return ssl.create_default_context(cadata=authority(home).pem)


@contextmanager
def _own(home: Path | None) -> Iterator[Path]:
    folder = _folder(home)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _folder(home: Path | None = None) -> Path:
    return (home or paths.home()).resolve() / "azure-trust"


def _trusted_here() -> Path:
    chosen = [os.environ.get(name, "") for name in _VARIABLES]
    system = ssl.get_default_verify_paths().cafile or ""
    return next((Path(name) for name in (*chosen, system) if name and Path(name).is_file()), Path(certifi.where()))
