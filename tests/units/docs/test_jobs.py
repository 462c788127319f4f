"""Jobs that documents and demonstrations show to copy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.facts.scheduling import GPU_RESOURCE
from simulator.host.paths import ROOT
from tests.support.pages import PAGES

FILES = [*PAGES, *sorted(ROOT.glob("demos/*/jobs/*.yaml"))]
BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def resources(found: Any) -> Iterator[dict[str, Any]]:
    """Yields every map that has `limits`, however deep."""
    if isinstance(found, dict):
        if "limits" in found:
            yield found
        found = list(found.values())
    if isinstance(found, list):
        for each in found:
            yield from resources(each)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_containers_state_their_gpus_under_requests_too(file: Path) -> None:
    """Kubernetes copies limits to requests only in pods, and Kueue counts jobs before their pods exist. Up to 0.19.3 it
    ignored the limits of jobs that were queued again (kubernetes-sigs/kueue#15093).
    """
    text = file.read_text("utf-8")
    for block in BLOCK.findall(text) if file.suffix == ".md" else [text]:
        for each in resources(list(yaml.safe_load_all(block))):
            if GPU_RESOURCE in each["limits"]:
                assert each.get("requests") == each["limits"]
