"""What upstream releases as a kustomization: its sum is Go's, and kubectl makes its manifests."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pulumi
import pytest

from components import manifests
from components.manifests import sum_of
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
"""As golang.org/x/mod/sumdb/dirhash says of these files."""
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
    """As Go's mirror has a module."""
    content = BytesIO()
    with ZipFile(content, "w", packing) as module:
        for name, text in files.items():
            module.writestr(f"{PIN.module}@{PIN.version}/{name}", text)
    return content.getvalue()


@pytest.fixture(autouse=True)
def mirror(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What it answers; the last one counts."""
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
    """A kubectl, and no other one."""
    (folder / "kubectl").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_the_sum_is_gos_however_the_files_are_packed_and_in_whatever_order() -> None:
    backwards = dict(reversed(FILES.items()))
    assert {sum_of(archive()), sum_of(archive(backwards, ZIP_STORED))} == {SUM}
    assert sum_of(archive(FILES | {"base/service.yaml": ""})) != SUM


@pytest.mark.simulator
def test_kubectl_makes_its_objects_in_the_pinned_namespace_and_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """And asks nobody for them: the name of a module may be that of a repository, as here."""
    monkeypatch.setenv("PATH", str(paths.tools_bin()))
    service, pod = manifests.manifests("job", None)
    assert service["metadata"] == {"name": "hook", "namespace": "ours"}
    assert pod["spec"]["containers"] == [{"image": "its/job:v1.0.0"}]


def test_of_the_module_everything_is_there_and_what_kubectl_says_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on_path(monkeypatch, tmp_path, 'read -r it <"$2/kustomization.yaml"; echo "$it" >&2; exit 1')
    with pytest.raises(pulumi.RunError, match=r"kubectl kustomize says: .*module/over.*\. Nothing was changed"):
        manifests.manifests("job", None)


def test_without_kubectl_it_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pulumi.RunError, match=r"(?s)job v1\.0\.0, and there is none on PATH.*az aks install-cli"):
        manifests.manifests("job", None)


def test_no_damage_of_an_archive_ends_in_a_traceback() -> None:
    whole = archive()
    damaged = (whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :] for at in range(len(whole)))
    assert {sum_of(each)[:3] for each in damaged} == {"h1:", "of "}


@pytest.mark.parametrize("other", [archive({"over/kustomization.yaml": "resources: []\n"}), b"<html>", b""])
def test_another_module_than_the_pinned_one_is_refused_before_kubectl_sees_it(
    other: bytes, mirror: list[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on_path(monkeypatch, tmp_path, f": >{tmp_path}/asked")
    mirror.append(other)
    fix = r"go mod download -json github\.com/example/job@v1\.0\.0"
    with pytest.raises(pulumi.RunError, match=rf"(?s)not those that were pinned.*has the sum .*it is h1:.*{fix}"):
        manifests.manifests("job", None)
    assert not (tmp_path / "asked").exists()
