"""How the cluster autoscaler decides: one profile for all pools that it scales."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from config.schema.base import PLAIN_DIGITS, Model

MAX_CLUSTER_NODES = 5000
"""Nodes of a cluster at most (https://learn.microsoft.com/azure/aks/quotas-skus-regions)."""
AKS_UNREADY_NODES = 3
"""AKS's default of `ok-total-unready-count`."""
Minutes = Annotated[int, Field(ge=0, le=1440), PLAIN_DIGITS]


class AutoscalerSettings(Model):
    """The autoscaler's profile, for all pools with `autoscale`.

    The defaults are AKS's, except where nodes that build drivers need more time: the autoscaler counts a GPU node as
    unready until it offers GPUs. AKS's page on the cluster autoscaler explains all properties of the profile.
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
    unready_minutes: Minutes = 60
    """How long a node is unready before it is deleted; the first 15 minutes of a new node do not count. A GPU node is
    unready until it offers GPUs; AKS's default of 20 may delete a node whose drivers are almost built.
    """
    unready_nodes: Annotated[int | None, Field(ge=0, le=MAX_CLUSTER_NODES), PLAIN_DIGITS] = None
    """How many nodes may be unready before the autoscaler pauses; by default as many as the GPU pools have at most,
    since all of them may build drivers at once.
    """
    unready_percent: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 45
    """More unready nodes than `unreadyNodes` are allowed up to this percentage of the cluster's nodes."""
    provision_minutes: Minutes = 30
    """How long a new node may take until it offers its GPUs. After that, the autoscaler gives up the scale-up and does
    not grow the pool for 5 to 30 minutes; AKS's default is 15.
    """

    def allowed_unready(self, gpu_nodes: int) -> int:
        """Returns how many nodes may be unready in a cluster whose pools have at most `gpu_nodes` GPU nodes."""
        return max(gpu_nodes, AKS_UNREADY_NODES) if self.unready_nodes is None else self.unready_nodes
