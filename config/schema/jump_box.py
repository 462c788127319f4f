"""A jump box: a virtual machine in the stack's network, for deployments to private clusters."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator

from config.data.near import hint, near
from config.data.skus import catalogue, written_differently
from config.schema.base import Model, Text, may_be, unfit

USER = "azureuser"
DISK_TYPE = "Premium_LRS"
_LENGTH = struct.Struct(">I")
_KINDS = ("ssh-ed25519", "ssh-rsa")
"""Azure's key types for Linux machines (SshEncryptionTypes of Microsoft.Compute); ecdsa is not documented."""
PUBLIC_KEY = (
    "the text of a public key, as in ~/.ssh/id_ed25519.pub: ssh-ed25519 AAAA..., or ssh-rsa AAAA... "
    "with 2048 bits or more"
)
_RSA_BITS = 2048
"""The shortest RSA key that Azure accepts (Azure's page create-ssh-keys-detailed)."""


def is_public_key(text: str) -> bool:
    kind, _, rest = text.partition(" ")
    return kind in _KINDS and "\n" not in text and _is_of(kind, rest.partition(" ")[0])


def _is_of(kind: str, body: str) -> bool:
    """Returns whether the body of a key has this type (RFC 4253, section 6.6). An RSA key must also be long enough."""
    try:
        data = base64.b64decode(body, validate=True)
    except binascii.Error:
        return False
    fields = list(_fields(data))
    if len(fields) < 2 or fields[0] != kind.encode():
        return False
    return kind != "ssh-rsa" or int.from_bytes(fields[-1], "big").bit_length() >= _RSA_BITS


def _fields(data: bytes) -> Iterator[bytes]:
    """Yields the length-prefixed fields of a key (RFC 4251, section 5); skips a truncated field."""
    while len(data) >= _LENGTH.size:
        (size,) = _LENGTH.unpack_from(data)
        field, data = data[_LENGTH.size :][:size], data[_LENGTH.size + size :]
        if len(field) == size:
            yield field


def _small_machine(name: str) -> str:
    usable = sorted((size for size in catalogue().values() if not size.gpus), key=lambda size: size.vcpus)
    names = [size.name for size in usable]
    if name not in names:
        found = [] if name in catalogue() else near(name, names)
        what = f"is {name!r}, which has GPUs or is unknown{hint(found)}"
        raise unfit(what, next(iter(written_differently(name, names)), None))
    return name


StrippedText = Annotated[Text, AfterValidator(str.strip), may_be(PUBLIC_KEY)]
PlainSku = Annotated[str, AfterValidator(_small_machine), may_be("a VM size of config/data/skus.yaml without a GPU")]


class JumpBoxSettings(Model):
    """A virtual machine in the network with Pulumi, kubectl and K9s, reachable through Azure Bastion."""

    ssh_public_key: StrippedText | None = None
    """Text of the SSH public key that may log in; required. On an existing machine, change it with `az vm user update`.
    """
    vm_sku: PlainSku = "Standard_D2s_v5"
    """VM size. A change restarts the machine."""
