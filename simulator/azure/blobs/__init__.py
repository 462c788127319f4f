"""The blob service behind storage accounts: Azurite, and in front of it the rules that Azurite does not know."""
