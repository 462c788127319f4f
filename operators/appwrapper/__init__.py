"""AppWrapper: jobs of teams that are started again, elsewhere, when what they run on fails."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from components.operators import Installed, Operator, Site
from config.facts.scheduling import WRAPPER_NAMESPACE
from config.schema.operators import Capability, QueuedOperatorSettings
from operators.appwrapper.component import NAME, AppWrapper


class _AppWrapper(Operator[QueuedOperatorSettings]):
    name = NAME
    title = "AppWrapper"
    summary = "Jobs of teams as a whole, started again on other nodes when theirs fail."
    has_chart = False
    namespace = WRAPPER_NAMESPACE
    level = "baseline"
    settings = QueuedOperatorSettings
    needs: Mapping[Capability, str] = {"queues": "starts what its queues admit"}

    def install(self, site: Site, settings: QueuedOperatorSettings, opts: pulumi.ResourceOptions) -> Installed:
        return AppWrapper(self.name, site, opts)


OPERATOR = _AppWrapper()
