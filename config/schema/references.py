"""References to container images, by the grammar of the distribution project (distribution/reference)."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from config.schema.base import may_be

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]+)?"
_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_TAG = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"

REGISTRY = rf"^{_HOST}(?:/{_PART})*$"
"""A registry, and where in it if not at its root, without a scheme."""
IMAGE = rf"^(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::{_TAG})?(?:@sha256:[0-9a-f]{{64}})?$"

Image = Annotated[
    str,
    StringConstraints(pattern=IMAGE, max_length=512),
    may_be("an image reference, as in registry.example.com/nccl-test:1.0"),
]
"""A whole image reference; its registry, tag and digest may be left out."""
