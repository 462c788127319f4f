"""The password as Jupyter Server wants it: hashed, so that nobody who reads the cluster learns it."""

from __future__ import annotations

import hashlib
import json

from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

# Jupyter's own cost: jupyter_server/auth/security.py, passwd().
_MEMORY_KIB, _ITERATIONS, _LANES = 10240, 10, 8
_HASH_BYTES, _SALT_BYTES = 32, 16

SERVER_CONFIG = "jupyter_server_config.json"
"""A file of this name is read from every folder of Jupyter's configuration path."""


def hashed(password: str, owner: str) -> str:
    """`argon2:` and the PHC text, which PasswordIdentityProvider.hashed_password takes.

    The salt is made from `owner`, a name that no other deployment has: a random one would be a change at every
    `pulumi up`, and of a salt only its being different from others' matters.
    """
    salt = hashlib.sha256(f"jupyterlab {owner}".encode()).digest()[:_SALT_BYTES]
    argon2 = Argon2id(salt=salt, length=_HASH_BYTES, iterations=_ITERATIONS, lanes=_LANES, memory_cost=_MEMORY_KIB)
    return f"argon2:{argon2.derive_phc_encoded(password.encode())}"


def server_config(hashed_password: str) -> str:
    """The file that makes the server ask for the password, and for nothing else. With a hash, there is no token."""
    provider = {"hashed_password": hashed_password, "password_required": True, "allow_password_change": False}
    return json.dumps({"PasswordIdentityProvider": provider}, indent=1) + "\n"
