from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from diagnosis.__main__ import main
from k8s.objects import Object
from tests.support.kubectl_proxy import script

Run = Callable[..., tuple[int, str, str]]
Serve = Callable[..., None]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "kubectl"


@pytest.fixture
def serve(fake: Path) -> Serve:
    def write(**objects: Sequence[Object]) -> None:
        items = {kind.replace("_", "."): json.dumps({"items": each}) for kind, each in objects.items()}
        cases = "".join(f"{kind}) echo '{each}';; " for kind, each in items.items())
        script(fake, f'case "$2" in {cases}*) echo \'{{"items": []}}\';; esac')

    return write


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str, str]:
        code, printed = main(arguments), capsys.readouterr()
        return code, printed.out, printed.err

    return command
