"""Emulated azure-native plugin of Pulumi: the provider's rules, in front of the simulated Azure Resource Manager.

It copies from the official plugin (3.29): names, ids, API versions, checks, diffs and replacements, previews, refresh
and error messages (source: pulumi/pulumi-azure-native, provider/pkg, as of 2026). Differences: it has few types,
rejects unknown properties instead of dropping them, and resumes its own interrupted creations.
"""

VERSION = "3.29.0"
