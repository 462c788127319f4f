from __future__ import annotations

from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pulumi
import pytest

from components import manifests
from components.manifests import checksum
from components.preflight import arm
from config.data.versions import Kustomization, versions
from simulator.host import paths

FILES = {
    "base/kustomization.yaml": "resources: [service.yaml, job.yaml]\n",
    "base/service.yaml": "{apiVersion: v1, kind: Service, metadata: {name: hook}}\n",
    "base/job.yaml": "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{image: its/job}]}}\n",
    "over/kustomization.yaml": "namespace: its\nresources: [../base]\n",
}
SUM = "h1:Zczgy3kQt/+XYx8ZcQ4EICq7mygpbvWKIpET0QXO3R8="
"""These files' checksum by golang.org/x/mod/sumdb/dirhash."""
PIN = Kustomization(
    name="job",
    version="v1.0.0",
    module="github.com/example/job",
    folder="over",
    namespace="ours",
    images=("its/job",),
    sum=SUM,
)


def archive(files: dict[str, str] = FILES, packing: int = ZIP_DEFLATED) -> bytes:
    content = BytesIO()
    with ZipFile(content, "w", packing) as module:
        for name, text in files.items():
            module.writestr(f"{PIN.module}@{PIN.version}/{name}", text)
    return content.getvalue()


@pytest.fixture(autouse=True)
def mirror(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The mirror's last answer counts."""
    given = [archive()]

    def fetch(url: str) -> tuple[int, bytes]:
        assert url == "https://proxy.golang.org/github.com/example/job/@v/v1.0.0.zip"
        return 200, given[-1]

    monkeypatch.setattr(arm, "fetch", fetch)
    found = versions().model_copy(update={"manifests": {"job": PIN}})
    monkeypatch.setattr(manifests, "versions", lambda: found)
    manifests.manifests.cache_clear()
    return given


def on_path(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    (folder / "kubectl").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_the_checksum_is_gos_for_any_order_and_compression() -> None:
    backwards = dict(reversed(FILES.items()))
    assert {checksum(archive()), checksum(archive(backwards, ZIP_STORED))} == {SUM}
    assert checksum(archive(FILES | {"base/service.yaml": ""})) != SUM


@pytest.mark.simulator
def test_builds_the_objects_with_the_pinned_namespace_and_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module's name could also be a repository's URL, which kubectl must not fetch."""
    monkeypatch.setenv("PATH", str(paths.tools_bin()))
    service, pod = manifests.manifests("job", None)
    assert service["metadata"] == {"name": "hook", "namespace": "ours"}
    assert pod["spec"]["containers"] == [{"image": "its/job:v1.0.0"}]


def test_reports_the_error_of_kubectl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    on_path(monkeypatch, tmp_path, 'read -r it <"$2/kustomization.yaml"; echo "$it" >&2; exit 1')
    with pytest.raises(pulumi.RunError, match=r"kubectl kustomize failed: .*module/over.*\. Nothing was changed"):
        manifests.manifests("job", None)


def test_a_missing_kubectl_is_reported_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pulumi.RunError, match=r"(?s)PATH has no kubectl.*job v1\.0\.0.*az aks install-cli"):
        manifests.manifests("job", None)


def test_a_damaged_archive_has_no_checksum() -> None:
    content = archive()
    damaged = (content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :] for at in range(len(content)))
    assert {checksum(each)[:3] for each in damaged} == {"h1:", "no "}


@pytest.mark.parametrize("other", [archive({"over/kustomization.yaml": "resources: []\n"}), b"<html>", b""])
def test_rejects_a_module_with_another_checksum_before_the_build(
    other: bytes, mirror: list[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on_path(monkeypatch, tmp_path, f": >{tmp_path}/asked")
    mirror.append(other)
    fix = r"go mod download -json github\.com/example/job@v1\.0\.0"
    with pytest.raises(pulumi.RunError, match=rf"(?s)do not match the pinned checksum.*, but .* has h1:.*{fix}"):
        manifests.manifests("job", None)
    assert not (tmp_path / "asked").exists()
