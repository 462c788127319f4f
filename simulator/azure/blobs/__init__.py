"""The blob service of storage accounts: Azurite behind a server with the rules that Azurite lacks."""
