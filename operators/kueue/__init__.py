"""Kueue: which jobs of teams may start, by quotas that teams lend each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pulumi

from components.operators import Installed, Operator, Site
from config.problems.errors import Problem
from config.problems.fixes import set_command
from config.schema.operators import MLBATCH_NAMESPACE, MONITORING, Capability, Installation
from operators.kueue.component import NAME, Kueue
from operators.kueue.settings import KueueSettings, topology_problems


class _Kueue(Operator[KueueSettings]):
    name = NAME
    title = "Kueue"
    summary = "Queues of teams' jobs, and their quotas."
    namespace = MLBATCH_NAMESPACE
    level = "baseline"
    settings = KueueSettings
    follows = (
        MONITORING,
        *("appwrapper", "kuberay", "training-operator"),  # whose jobs are in namespaces of teams, which go before them
    )

    def provides(self, settings: KueueSettings) -> Mapping[Capability, str]:
        return {"queues": NAME}

    def problems(self, installation: Installation) -> Iterator[Problem]:
        """Teams are nothing without it, nor a topology without it and the labels of nodes."""
        stack = installation.stack
        asked = [key for key, given in (("teams", stack.teams), ("slackGpus", stack.slack_gpus)) if given]
        if asked and not stack.operators.of(self).enabled:
            path = ("operators", NAME, "enabled")
            what = f"is false, but what {' and '.join(asked)} {'say' if len(asked) > 1 else 'says'} is for {self.title}"
            yield Problem(path, what, f"true, or a stack without {' and '.join(asked)}", set_command(path, True))
        if stack.operators.of(self).topology:
            yield from topology_problems(installation)

    def install(self, site: Site, settings: KueueSettings, opts: pulumi.ResourceOptions) -> Installed:
        return Kueue(self.name, site, settings, opts)


OPERATOR = _Kueue()
