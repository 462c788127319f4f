"""The stack's container registry, and the grammar of image references (distribution/reference)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from config.schema.base import EMPTY_IS_UNSET, Model, may_be
from config.schema.names import Names, global_name

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]+)?"
_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_TAG = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"

REGISTRY = rf"^{_HOST}(?:/{_PART})*$"
IMAGE = rf"^(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::{_TAG})?(?:@sha256:[0-9a-f]{{64}})?$"

Image = Annotated[
    str,
    StringConstraints(pattern=IMAGE, max_length=512),
    may_be("an image reference, as in registry.example.com/nccl-test:1.0"),
]
MAX_REGISTRY_NAME = 50

RegistryName = Annotated[
    str,
    StringConstraints(pattern=rf"^[A-Za-z0-9]{{5,{MAX_REGISTRY_NAME}}}$"),
    may_be(f"5 to {MAX_REGISTRY_NAME} letters and digits, unique in Azure"),
]


class RegistrySettings(Model):
    """The Azure Container Registry for the images of `docker/`."""

    name: Annotated[RegistryName | None, EMPTY_IS_UNSET] = None
    """Globally unique name of the container registry; by default derived from project, stack and subscription."""
    sku: Literal["Basic", "Standard", "Premium"] = "Standard"
    """`Basic`, `Standard` or `Premium`: 1,000, 3,000 and 10,000 reads per minute. Use `Premium` if hundreds of nodes
    pull at the same time. A change updates the registry in place.

    Source: Azure's page on the registry's tiers (container-registry-skus). The default does not depend on the number of
    nodes, because the registry would then change under running jobs.
    """

    def full_name(self, names: Names, subscription_id: str) -> str:
        return self.name or global_name(names, subscription_id, MAX_REGISTRY_NAME)


def login_server(registry_name: str) -> str:
    """Returns the registry's host name; ARM writes it in lower case."""
    return f"{registry_name.lower()}.azurecr.io"
