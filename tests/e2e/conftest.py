"""One simulator per test process, and stacks on it; each stack is a cluster of its own."""

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
    """Makes stacks with the settings of `dev`, but of its workloads and data only the NCCL test, changed as given.

    They are taken away after the module's tests, name and all: the next module may say that there is none of them.
    Stories whose point is `pulumi destroy` run it themselves.
    """
    made: list[Stack] = []

    def create(name: str, **config: Any) -> Stack:
        made.append(Stack.create(world, name, tmp_path_factory.mktemp(name) / "project", ONE_TEST | config))
        return made[-1]

    yield create
    for stack in made:
        stack.discard()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows with a failed test how its clusters stood: it may fail once in a hundred runs only."""
    report = yield
    world = getattr(item, "funcargs", {}).get("world")
    if report.failed and world is not None:
        report.sections.append(("clusters", evidence.of(world)))
    return report
