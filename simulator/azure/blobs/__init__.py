"""The blob service of storage accounts: Azurite behind a front with the rules that Azurite lacks."""
