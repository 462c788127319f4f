"""The stack's container registry, and references to images.

References are by the grammar of the distribution project (distribution/reference).
"""

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
"""A registry, and where in it if not at its root, without a scheme."""
IMAGE = rf"^(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::{_TAG})?(?:@sha256:[0-9a-f]{{64}})?$"

Image = Annotated[
    str,
    StringConstraints(pattern=IMAGE, max_length=512),
    may_be("an image reference, as in registry.example.com/nccl-test:1.0"),
]
"""A whole image reference; its registry, tag and digest may be left out."""
MAX_REGISTRY_NAME = 50

RegistryName = Annotated[
    str,
    StringConstraints(pattern=rf"^[A-Za-z0-9]{{5,{MAX_REGISTRY_NAME}}}$"),
    may_be(f"5 to {MAX_REGISTRY_NAME} letters and digits, a name that nobody else in Azure has"),
]


class RegistrySettings(Model):
    """Azure Container Registry for the images of `docker/`."""

    name: Annotated[RegistryName | None, EMPTY_IS_UNSET] = None
    """The container registry's name, unique in all of Azure; by default from project, stack and subscription."""
    sku: Literal["Basic", "Standard", "Premium"] = "Standard"
    """`Basic`, `Standard` or `Premium`, which serve 1,000, 3,000 and 10,000 reads a minute: hundreds of nodes that pull
    at once need `Premium`; another one changes the registry in place.

    Figures: Azure's page on the registry's tiers (container-registry-skus). It does not follow the number of nodes, or
    the registry would change under running jobs.
    """

    def full_name(self, names: Names, subscription_id: str) -> str:
        """The registry's name in ARM."""
        return self.name or global_name(names, subscription_id, MAX_REGISTRY_NAME)


def login_server(registry_name: str) -> str:
    """The registry's host, before which images need no scheme; ARM writes it in lower case."""
    return f"{registry_name.lower()}.azurecr.io"
