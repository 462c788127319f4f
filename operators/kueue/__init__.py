"""Kueue: which jobs of teams may start, by quotas that teams lend each other."""

from __future__ import annotations

import pulumi

from components.operators import Installed, Operator, Site
from config.schema.operators import MLBATCH_NAMESPACE, ChartSettings
from operators.kueue.component import NAME, Kueue


class KueueSettings(ChartSettings):
    """It is off unless it is asked for: a cluster with one user has no need of quotas."""

    enabled: bool = False
    """Whether the stack has it."""


class _Kueue(Operator[KueueSettings]):
    name = NAME
    title = "Kueue"
    summary = "Queues of teams' jobs, and their quotas."
    namespace = MLBATCH_NAMESPACE
    level = "baseline"
    settings = KueueSettings

    def install(self, site: Site, settings: KueueSettings, opts: pulumi.ResourceOptions) -> Installed:
        return Kueue(self.name, site, settings, opts)


OPERATOR = _Kueue()
