from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pulumi
import pytest

from components import manifests
from components.preflight import arm
from config.data.versions import versions
from tests.support.lookups import Answer, everything
from tests.support.mocked_azure import Azure
from tests.support.mocks import program
from tests.support.sizes import H100

TEXT = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: appwrapper-operator-config}\n---\n# nothing\n"
PIN = versions().manifests["appwrapper"]
MAPS = {"kueue": {"enabled": True}, "appwrapper": {"enabled": True}}
STACK = {"vmSku": H100, "cluster": {"localAccounts": True}, "operators": MAPS}


@pytest.fixture(autouse=True)
def clear_cache() -> Iterator[None]:
    manifests.manifests.cache_clear()
    yield
    manifests.manifests.cache_clear()


def answer_all(monkeypatch: pytest.MonkeyPatch, given: Answer | Exception) -> list[str]:
    asked: list[str] = []

    def fetch(url: str) -> Answer:
        asked.append(url)
        if isinstance(given, Exception):
            raise given
        return given

    monkeypatch.setattr(arm, "fetch", fetch)
    return asked


@pytest.mark.parametrize(
    ("given", "why"), [(OSError("no route to host"), "no route to host"), ((404, b""), "it answers 404")]
)
def test_a_failed_download_is_reported_with_the_commands_that_fix_it(
    given: Answer | Exception, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_all(monkeypatch, given)
    with pytest.raises(pulumi.RunError) as refused:
        manifests.manifests("appwrapper", None)
    assert why in str(refused.value)
    assert "make upstream-charts" in str(refused.value)
    assert "pulumi config set" in str(refused.value)


def test_reads_manifests_from_a_folder_of_charts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = answer_all(monkeypatch, OSError("not asked"))
    (tmp_path / "appwrapper").mkdir()
    (tmp_path / "appwrapper" / "install.yaml").write_bytes(TEXT)
    assert len(manifests.manifests("appwrapper", f"{tmp_path}/")) == 1
    assert asked == []


@pytest.mark.parametrize("text", ["", "just: text", "[", "- a", "kind: A\napiVersion: v1\nmetadata: {}", "\xff"])
def test_rejects_a_file_without_kubernetes_objects(text: str, tmp_path: Path) -> None:
    (tmp_path / "appwrapper").mkdir()
    (tmp_path / "appwrapper" / "install.yaml").write_bytes(text.encode("latin-1"))
    with pytest.raises(
        pulumi.RunError, match=r"appwrapper/install\.yaml (does not contain Kubernetes objects|cannot be)"
    ):
        manifests.manifests("appwrapper", str(tmp_path))


def test_downloads_manifests_of_enabled_operators_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def fetch(url: str, token: str = "") -> Answer:
        if url == PIN.address:
            asked.append(url)
            return 404, b""
        return everything(url, token)

    program(STACK | {"operators": {}}, Azure(fetch=fetch))
    assert asked == []
    with pytest.raises(pulumi.RunError, match="Nothing was changed"):
        program(STACK, Azure(fetch=fetch))
    assert asked == [PIN.address]
