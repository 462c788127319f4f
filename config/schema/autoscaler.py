"""How the cluster autoscaler decides: one profile for all pools that it scales."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from config.schema.base import PLAIN_DIGITS, Model

Minutes = Annotated[int, Field(ge=0, le=1440), PLAIN_DIGITS]


class AutoscalerSettings(Model):
    """The autoscaler's profile, for all pools with `autoscale`; the defaults are AKS's.

    ManagedClusterPropertiesAutoScalerProfile has more; AKS's page on the cluster autoscaler explains them.
    """

    expander: Literal["random", "least-waste", "most-pods", "priority"] = "random"
    """Which pool grows where several would do: `random`, `least-waste`, `most-pods`, or `priority`: that of the pools'
    `autoscale.priority`.
    """
    unneeded_minutes: Minutes = 10
    """How long a node is not needed before it goes."""
    delay_after_add_minutes: Minutes = 10
    """For how long no node goes after one has come."""
    max_termination_seconds: Annotated[int, Field(ge=0, le=86400), PLAIN_DIGITS] = 600
    """How long pods of a node that goes may take to end."""
