"""Where a cloud has its services: by this the azure-native plugin, and the program, find the Resource Manager.

Source: Azure's own answer at https://management.azure.com/metadata/endpoints, in the version that the plugin asks for
(pulumi-azure-native, provider/pkg/azure/cloud/metadata/client.go). Of its fields, those that say where ARM is.
"""

from __future__ import annotations

from simulator.azure.store import Body

PATH = "/metadata/endpoints"


def answer(endpoint: str, tenant: str) -> Body:
    """Of a GET, which needs no token."""
    return {
        "name": "AiOnAksSimulator",
        "resourceManager": endpoint,
        "authentication": {"audiences": [endpoint], "loginEndpoint": endpoint, "tenant": tenant},
    }
