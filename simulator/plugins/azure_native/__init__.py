"""A stand-in for Pulumi's azure-native plugin: the provider's rules, in front of the simulated Azure Resource Manager.

The same as in the official plugin (3.29): names, ids, API versions, checks, diffs and replacements, previews, refresh,
texts of errors (source: pulumi/pulumi-azure-native, provider/pkg, as of 2026). What differs: it has few types, it
refuses properties that it does not know instead of dropping them, and it resumes its own interrupted creations.
"""

VERSION = "3.29.0"
