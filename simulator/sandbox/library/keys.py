"""Reads ssh's keys, to check whether a private key is authorized."""

from __future__ import annotations

import base64
import binascii
import struct

PKCS1 = "RSA PRIVATE KEY"
OPENSSH = "OPENSSH PRIVATE KEY"
OPENSSH_MAGIC = b"openssh-key-v1\0"


class BadKey(ValueError):
    """A key file that ssh cannot read."""


def authorized(text: str) -> list[str]:
    """Returns the base64 key of each authorized_keys line, without options before the key type."""
    lines = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [word for words in lines for word in words if word.startswith("AAAA")]


def public_key(private: str) -> str:
    """Returns the public key of an unencrypted private key, in base64 as in authorized_keys. Raises BadKey."""
    label = private.strip().partition("-----BEGIN ")[2].partition("-----")[0]
    body = "".join(line for line in private.splitlines() if line and not line.startswith("-----"))
    try:
        raw = base64.b64decode(body)
        if label == PKCS1:
            blob = _from_pkcs1(raw)
        elif label == OPENSSH:
            blob = _from_openssh(raw)
        else:
            raise BadKey(f"unsupported key format {label or 'without a header'}")
    except (binascii.Error, struct.error, IndexError) as error:
        raise BadKey("invalid format") from error
    return base64.b64encode(blob).decode()


def _from_pkcs1(raw: bytes) -> bytes:
    """Converts SEQUENCE { version, modulus, exponent, ... } (RFC 8017 A.1.2) to ssh's wire format (RFC 4253 6.6)."""
    _, start, _ = _der(raw, 0)
    _, _, end = _der(raw, start)
    _, modulus_start, modulus_end = _der(raw, end)
    _, exponent_start, exponent_end = _der(raw, modulus_end)
    return b"".join(map(_string, (b"ssh-rsa", raw[exponent_start:exponent_end], raw[modulus_start:modulus_end])))


def _from_openssh(raw: bytes) -> bytes:
    """Returns the first public key, which follows cipher, kdf, kdf options and number of keys (PROTOCOL.key)."""
    if not raw.startswith(OPENSSH_MAGIC):
        raise BadKey("invalid format")
    position = len(OPENSSH_MAGIC)
    for _ in range(3):
        position += 4 + struct.unpack_from(">I", raw, position)[0]
    position += 4
    length = struct.unpack_from(">I", raw, position)[0]
    return raw[position + 4 : position + 4 + length]


def _der(raw: bytes, position: int) -> tuple[int, int, int]:
    """Returns (tag, start, end) of the DER element's contents."""
    length, start = raw[position + 1], position + 2
    if length & 0x80:
        size = length & 0x7F
        length, start = int.from_bytes(raw[start : start + size], "big"), start + size
    return raw[position], start, start + length


def _string(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value
