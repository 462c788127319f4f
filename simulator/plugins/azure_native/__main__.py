"""The plugin process, which the engine starts as `pulumi-resource-azure-native <engine address>`."""

from __future__ import annotations

from simulator.plugins.azure_native.provider import AzureNativeProvider
from simulator.plugins.serving import serve

serve(AzureNativeProvider())
