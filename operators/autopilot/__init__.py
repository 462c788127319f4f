"""Autopilot: checks the GPUs of nodes again and again, and labels nodes with what it finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pulumi

from components.operators import Installed, Operator, Site
from config.problems.errors import Problem
from config.schema.operators import MONITORING, Capability, Installation
from operators.autopilot.component import NAME, Autopilot
from operators.autopilot.settings import AutopilotSettings, problems


class _Autopilot(Operator[AutopilotSettings]):
    name = NAME
    title = "Autopilot"
    summary = "Checks GPUs every hour and labels their nodes; AppWrapper goes by these labels."
    namespace = NAME
    settings = AutopilotSettings
    follows = (MONITORING, "gpu-operator", "nfs-subdir-external-provisioner")
    needs: Mapping[Capability, str] = {"GPUs": "checks them by the runtime that it brings"}

    def problems(self, installation: Installation) -> Iterator[Problem]:
        """Intervals that end it, and a test of storage that there is none of."""
        if installation.stack.operators.of(self).enabled:
            yield from problems(installation.stack, installation.stack.operators.of(self))

    def install(self, site: Site, settings: AutopilotSettings, opts: pulumi.ResourceOptions) -> Installed:
        return Autopilot(self.name, site, settings, opts)


OPERATOR = _Autopilot()
