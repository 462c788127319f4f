from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest
from azure.storage.blob import BlobClient, ContainerClient

from simulator.azure.data_plane import DataPlane
from simulator.host.certificates import Authority
from simulator.kubelet.csi import blob
from simulator.kubelet.csi.mount import BlobMount
from simulator.world.azure_services import BlobService
from tests.support.blob_account import BlobAccount, blob_account
from tests.unit.simulator.kubelet.cluster import FakeCloud, volume

pytestmark = pytest.mark.simulator


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlobAccount]:
    with blob_account(tmp_path_factory.mktemp("blobs")) as started:
        started.container(started.service_sas("cw")).upload_blob("shards/0", b"tokens", overwrite=True)
        yield started


@pytest.fixture
def errors() -> list[str]:
    return []


def mount(account: BlobAccount, folder: Path, errors: list[str], container: str = "data", **secret: str) -> BlobMount:
    """The secret has these keys (lower-case, without `azurestorageaccount`)."""
    data = {f"azurestorageaccount{key}": value for key, value in {"name": "models", **secret}.items()}
    made = volume(volumeAttributes={"containerName": container})
    cloud = DataPlane(account.arm.server.world, account.arm.server.tokens)
    return blob.stage(made, data, cloud, folder / "mount", read_only=False, report=errors.append)


def test_uploads_and_downloads_files_with_a_sas(account: BlobAccount, tmp_path: Path, errors: list[str]) -> None:
    writer = mount(account, tmp_path / "a", errors, sastoken=account.service_sas("racwdl"))
    reader = mount(account, tmp_path / "b", errors, sastoken=account.service_sas("rl"))
    assert (writer.read_only, reader.read_only) == (False, True)
    (writer.path / "empty").touch()
    (writer.path / "step10").mkdir()
    (writer.path / "step10/model.pt").write_bytes(bytes(range(256)) * 4096)
    writer.flush()
    reader.refresh()
    assert (reader.path / "step10/model.pt").read_bytes() == bytes(range(256)) * 4096
    assert (reader.path / "empty").read_bytes() == b""
    (writer.path / "step10/model.pt").unlink()
    (writer.path / "empty").unlink()
    writer.flush()
    reader.refresh()
    assert [file.name for file in reader.path.iterdir() if file.is_file()] == []
    assert errors == []


def test_uploads_a_file_once(account: BlobAccount, tmp_path: Path, errors: list[str]) -> None:
    writer = mount(account, tmp_path, errors, sastoken=account.service_sas("racwdl"))
    (writer.path / "once").write_text("1")
    writer.flush()
    before = account.container(account.service_sas("r")).get_blob_client("once").get_blob_properties().etag
    writer.refresh()
    assert account.container(account.service_sas("r")).get_blob_client("once").get_blob_properties().etag == before


def test_requests_only_changed_blobs(
    account: BlobAccount, tmp_path: Path, errors: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mounts with the same SAS share content without requests."""
    sas = account.service_sas("racwdl")
    writer, reader = (mount(account, tmp_path / name, errors, sastoken=sas) for name in "ab")
    asked: list[str] = []
    ways = {"download_blob": ContainerClient, "list_blobs": ContainerClient, "get_blob_properties": BlobClient}
    for method, client in ways.items():
        really = getattr(client, method)

        def counted(self: Any, *names: str, _really: Any = really, _method: str = method, **options: Any) -> Any:
            asked.extend([f"{_method} {names}"] if "results_per_page" not in options else [])
            return _really(self, *names, **options)

        monkeypatch.setattr(client, method, counted)
    (writer.path / "attempts/1").mkdir(parents=True)
    (writer.path / "attempts/1/out").write_text("1")
    writer.flush()
    (writer.path / "attempts/1").rename(writer.path / "done")
    (writer.path / "attempts").rmdir()
    (writer.path / "folder").mkdir()
    writer.flush()
    reader.refresh()
    assert (reader.path / "done/out").read_text() == "1"
    assert (reader.path / "folder").is_dir()
    assert not (reader.path / "attempts").exists()
    assert asked == []
    assert errors == []


def test_sees_changes_of_other_clients(account: BlobAccount, tmp_path: Path, errors: list[str]) -> None:
    others = account.container(account.service_sas("racwdl"))
    others.upload_blob("mine", b"1")
    reader = mount(account, tmp_path, errors, sastoken=account.service_sas("racwdl"))
    others.upload_blob("mine", b"22", overwrite=True)
    others.upload_blob("new/one", b"3")
    others.get_blob_client("new/one").set_blob_metadata({"seen": "yes"})
    reader.refresh()
    assert ((reader.path / "mine").read_bytes(), (reader.path / "new/one").read_bytes()) == (b"22", b"3")
    others.delete_blobs("mine", "new/one")
    reader.refresh()
    assert not (reader.path / "mine").exists()
    assert not (reader.path / "new").exists()
    assert errors == []


def test_does_not_copy_unsent_content_of_another_mount(account: BlobAccount, tmp_path: Path, errors: list[str]) -> None:
    sas = account.service_sas("racwdl")
    writer, reader = (mount(account, tmp_path / name, errors, sastoken=sas) for name in "ab")
    (writer.path / "log").write_text("sent")
    writer.flush()
    (writer.path / "log").write_text("sent, and more")
    reader._take(at_once=True)
    assert (reader.path / "log").read_text() == "sent"


@pytest.mark.parametrize(
    ("sas", "words"),
    [
        ({"hours": -1}, ["[AuthenticationFailed]", "[the SAS expired at"]),
        ({"permissions": "r"}, ["[AuthorizationPermissionMismatch]"]),
        ({"permissions": "rl", "container": "missing"}, ["[ContainerNotFound]"]),
    ],
    ids=["expired", "cannot list", "no such container"],
)
def test_rejects_a_container_without_access(
    account: BlobAccount, tmp_path: Path, sas: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(blob.StageError) as refused:
        mount(account, tmp_path, [], sas.get("container", "data"), sastoken=account.service_sas(**sas))
    assert [
        each for each in [f"[BlockBlob::TestPipeline : {words[0]}]", *words] if each not in str(refused.value)
    ] == []


def test_an_error_does_not_contain_the_sas(account: BlobAccount, tmp_path: Path, errors: list[str]) -> None:
    stranger = Authority(tmp_path / "pki", "stranger")
    azure = FakeCloud(service=BlobService(account.url, Path(stranger.path("ca", "crt"))))
    sas = account.service_sas("rl")
    data = {"azurestorageaccountname": "olmodata", "azurestorageaccountsastoken": sas}
    with pytest.raises(blob.StageError) as refused:
        blob.stage(volume(), data, azure, tmp_path, read_only=False, report=errors.append)
    assert "certificate verify failed" in str(refused.value)
    assert parse_qs(sas)["sig"][0] not in unquote(str(refused.value))
