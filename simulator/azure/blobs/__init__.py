"""The blob service of storage accounts: Azurite, behind a front that applies the rules Azurite does not know."""
