"""The plugin process: `pulumi-resource-azure-native <engine address>`."""

from __future__ import annotations

from simulator.plugins.azure_native.provider import AzureNativeProvider
from simulator.plugins.serving import serve

serve(AzureNativeProvider())
