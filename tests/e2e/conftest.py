"""Stacks on one simulator per test process, each with its own cluster.

The tests of a file share its stack and run in order: each may need the previous one's state.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from tests.e2e import evidence
from tests.support.world import Stack, World

ONE_TEST = {"workloads": "nccl-allreduce", "workloadOptions": None, "modelSize": None, "storage": None}


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    running = World(tmp_path_factory.mktemp("simulator"))
    running.simulator("start")
    yield running
    running.close()
    running.simulator("stop")


@pytest.fixture(scope="module")
def new_stack(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Stack]]:
    """Creates stacks with the settings of the stack `like`, changed by `config`.

    Keeps only the NCCL test of dev's workloads and data. Discards all stacks after the module, to free their names.
    Tests of `pulumi destroy` run it themselves.
    """
    made: list[Stack] = []

    def create(name: str, /, like: str = "dev", **config: Any) -> Stack:
        settings = ONE_TEST | config if like == "dev" else config
        made.append(Stack.create(world, name, tmp_path_factory.mktemp(name) / "project", settings, like))
        return made[-1]

    yield create
    for stack in reversed(made):
        stack.discard()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the clusters' state to the report of a failure, which may be one in a hundred runs."""
    report = yield
    world = getattr(item, "funcargs", {}).get("world")
    if report.failed and world is not None:
        report.sections.append(("clusters", evidence.report(world)))
    return report
