"""The resource types of the emulated plugin: all types of the simulated ARM."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from simulator.azure.schema import CONTAINER, Field, Schema, Sdk, schemas
from simulator.plugins.errors import PluginError

API_VERSION = "azureApiVersion"
CREATE_BEFORE_DELETE = "__createBeforeDelete"
"""An input that the plugin sets if it chose a random name: the old and the new resource can then coexist."""
_VERSIONED = re.compile(r"(azure-native:\w+)/v(\d{4})(\d{2})(\d{2}):(\w+)")


@dataclass(frozen=True)
class Definition:
    """A resource type, with the property names of ARM and of the SDK."""

    schema: Schema

    @property
    def sdk(self) -> Sdk:
        return self.schema.sdk

    @property
    def api_version(self) -> str:
        return self.schema.api_versions[-1]

    @cached_property
    def parameters(self) -> list[str]:
        return [name for name in re.findall(r"{(\w+)}", self.sdk.path) if name != "subscriptionId"]

    @property
    def name(self) -> str:
        return self.parameters[-1]

    @cached_property
    def outputs(self) -> Mapping[str, Field]:
        """All properties, with ARM's `properties` at the top level."""
        top = self.schema.body.fields
        inner = top[CONTAINER].fields if self.sdk.flattens else {}
        return {
            self.sdk_name(name): field for name, field in (inner | dict(top)).items() if not self._is_container(name)
        }

    @cached_property
    def inputs(self) -> Mapping[str, Field]:
        """Properties of the request body that a program may set."""
        top = self.schema.body.fields
        inner = top[CONTAINER].fields if self.sdk.flattens else {}
        writable = {name: field for name, field in top.items() if not field.read_only and name != CONTAINER}
        writable |= {name: field for name, field in inner.items() if not field.read_only}
        return {self.sdk_name(name): field for name, field in writable.items()}

    def arm_name(self, name: str) -> str:
        return self.sdk.renamed.get(name, name)

    def sdk_name(self, name: str) -> str:
        return next((own for own, arm in self.sdk.renamed.items() if arm == name), name)

    def in_container(self, name: str) -> bool:
        inside = self.sdk.flattens and self.arm_name(name) in self.schema.body.fields[CONTAINER].fields
        return inside and name in self.inputs

    def _is_container(self, name: str) -> bool:
        return name == CONTAINER and self.sdk.flattens


DEFINITIONS: Mapping[str, Definition] = {schema.sdk.token: Definition(schema) for schema in schemas().values()}


def definition(token: str) -> Definition:
    """Returns the definition of a type token. The token may include the default API version.

    Raises PluginError if the type or the version is not simulated.
    """
    plain, version = token, None
    if match := _VERSIONED.fullmatch(token):
        plain, version = f"{match[1]}:{match[5]}", f"{match[2]}-{match[3]}-{match[4]}"
    found = DEFINITIONS.get(plain)
    if found is None:
        known = ", ".join(DEFINITIONS)
        raise PluginError(f"Resource type {token} is not simulated. The simulator has: {known}.")
    if version not in (None, found.api_version):
        raise PluginError(
            f"Resource type {token} is not simulated. Use {plain}, which has API version {found.api_version}."
        )
    return found


def of_urn(urn: str) -> Definition:
    return definition(urn.split("::")[2].rpartition("$")[2])
