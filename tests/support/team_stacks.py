"""Stacks of teams under mocks: a platform with one team or more, and workloads of another stack on it."""

from __future__ import annotations

from typing import Any

from tests.support.golden import H100
from tests.support.mocked_azure import Azure
from tests.support.mocks import Recorder, Registered, program


def platform(operators: tuple[str, ...], teams: dict[str, Any], storage: dict[str, Any]) -> Recorder:
    """Two nodes with Kueue and `operators`."""
    keys = {
        "vmSku": H100,
        "nodeCount": 2,
        "cluster": {"localAccounts": True},
        "charts": {"source": "simulator/charts"},
        "operators": {
            "scheduler": "scheduler-plugins-scheduler",
            **{each: {"enabled": True} for each in ("kueue", *operators)},
        },
        "teams": teams,
        "storage": storage,
    }
    return program(keys, stack="teams")


def guest(made: Recorder, workload: str, options: dict[str, Any]) -> Recorder:
    """The stack `mine` with that workload; with a token its options are secret."""
    keys = {"platformStack": "teams", "workloads": workload, "workloadOptions": {workload: options}}
    secret = ("workloadOptions",) if "huggingFaceToken" in options else ()
    return program(keys, Azure(stacks={"teams": made}), stack="mine", secret=secret)


def in_team(found: Recorder) -> list[Registered]:
    """What a guest makes in Kubernetes, but for what tells the platform of it."""
    made = [each for each in found.registered if each.type.startswith("kubernetes:")]
    return [each for each in made if each.name != "guest"]


def kinds(found: Recorder, *providers: str) -> dict[str, list[str]]:
    """Of what each of these providers makes there."""
    made = in_team(found)
    return {
        provider: sorted({each.type.split(":")[-1] for each in made if each.provider.endswith(f" {provider}")})
        for provider in providers
    }
