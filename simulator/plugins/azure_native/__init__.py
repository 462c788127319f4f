"""Emulated azure-native plugin of Pulumi for the simulated ARM.

Names, ids, API versions, checks, diffs, replacements, previews, refresh and errors are those of the official plugin
3.29 (pulumi/pulumi-azure-native, provider/pkg, as of 2026). Differences: the emulation has few types, rejects unknown
properties instead of dropping them, and resumes interrupted creations.
"""

VERSION = "3.29.0"
