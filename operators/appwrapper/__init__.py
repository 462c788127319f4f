"""AppWrapper: jobs of teams that are started again, elsewhere, when what they run on fails."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from components.operators import Installed, Operator, Site
from config.schema.operators import Capability, OperatorSettings
from operators.appwrapper.component import NAME, NAMESPACE, AppWrapper


class AppWrapperSettings(OperatorSettings):
    """It is off unless it is asked for, as the queues that it is for."""

    enabled: bool = False
    """Whether the stack has it."""


class _AppWrapper(Operator[AppWrapperSettings]):
    name = NAME
    title = "AppWrapper"
    summary = "Jobs of teams as a whole, started again on other nodes when theirs fail."
    has_chart = False
    namespace = NAMESPACE
    level = "baseline"
    settings = AppWrapperSettings
    needs: Mapping[Capability, str] = {"queues": "starts what its queues admit"}

    def install(self, site: Site, settings: AppWrapperSettings, opts: pulumi.ResourceOptions) -> Installed:
        return AppWrapper(self.name, site, opts)


OPERATOR = _AppWrapper()
