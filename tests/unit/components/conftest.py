from __future__ import annotations

import asyncio

import pulumi
import pytest

from components.preflight import arm
from tests.support.lookups import Answer, answer, everything


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> dict[str, Answer]:
    """Answers by a part of the URL, which override those that allow everything. Records requests as `asked <url>`."""
    given: dict[str, Answer] = {}

    def fetch(url: str, token: str = "") -> Answer:
        given[f"asked {url}"] = answer({})
        found = next(
            (found for part, found in list(given.items()) if part in url and not part.startswith("asked")), None
        )
        return found or everything(url, token)

    monkeypatch.setattr(arm, "fetch", fetch)
    monkeypatch.delenv("ARM_METADATA_HOSTNAME", raising=False)
    return given


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_, **__: found.append(text))
    return found


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return slept
