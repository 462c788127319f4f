"""Where a cloud has its services: by this the azure-native plugin, and the program, find the Resource Manager.

Source: Azure's own answer at https://management.azure.com/metadata/endpoints, in the version that the plugin asks for.
Of its fields, those that the plugin uses (pulumi-azure-native, provider/pkg/azure/cloud/cloud.go,
FromMetadataEndpoint), and the tenant.
"""

from __future__ import annotations

from http import HTTPStatus

from simulator.azure.errors import ArmError
from simulator.azure.store import Body
from simulator.azure.tokens import GRAPH, Tokens

PATH = "/metadata/endpoints"
_API_VERSION = "2022-09-01"
_SUFFIXES = {"storage": "core.windows.net", "keyVaultDns": "vault.azure.net", "acrLoginServer": "azurecr.io"}
"""Azure's own: the simulated registries have its names, and nothing is reached by the others."""


def answer(version: str, tokens: Tokens) -> Body:
    """Of a GET, which needs no token. Raises ArmError."""
    if version != _API_VERSION:
        message = f"The api-version '{version}' is invalid. The supported versions are '{_API_VERSION}'."
        raise ArmError(HTTPStatus.BAD_REQUEST, "InvalidApiVersionParameter", message)
    here = tokens.arm
    return {
        "name": "AiOnAksSimulator",
        "resourceManager": here,
        "authentication": {
            "audiences": [here],
            "loginEndpoint": here,
            "tenant": tokens.subscription.tenant_id,
            "identityProvider": "AAD",
        },
        "microsoftGraphResourceId": GRAPH,
        "suffixes": _SUFFIXES,
    }
