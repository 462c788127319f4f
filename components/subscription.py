"""The Azure subscription that is deployed to."""

from __future__ import annotations

from pulumi_azure_native import authorization


def subscription_id() -> str:
    """Its id, at once and not as an output, because names in Azure that are derived from it are in other names."""
    return str(authorization.get_client_config().subscription_id)
