from __future__ import annotations

import hashlib
import io
import os
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rich.console import Console

from simulator.tools.catalogue import Build, Catalogue, DiskSpace, Release, Tool
from simulator.tools.install import Installer
from simulator.tools.progress import Progress
from simulator.tools.store import Store

UNREACHABLE = "http://127.0.0.1:9/"  # no process listens at the discard port

FAKE_GO = """#!/bin/sh
set -eu
if [ "$1" = env ]; then echo go1.26.8; exit; fi
echo build >>"$FAKE_GO_CALLS"
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\\necho made\\n' >"$2"
chmod +x "$2"
eval "${FAKE_GO_THEN:-:}"
"""


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        pass


class Workshop:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.output = io.StringIO()
        self.calls = root / "calls"
        module = root / "modules" / "hello"
        module.mkdir(parents=True)
        for pins in ("go.mod", "go.sum"):
            (module / pins).touch()

    @property
    def builds(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0

    @property
    def log(self) -> str:
        return self.output.getvalue()

    def tool(self, name: str = "hello", **changes: object) -> Tool:
        build = Build(module="hello", package="example.test/hello")
        return Tool.model_validate(
            {"name": name, "version": "1.0", "needed_for": frozenset({"simulator"}), "build": build, **changes}
        )

    def installer(self, *tools: Tool, probe: str = UNREACHABLE) -> Installer:
        sizes = DiskSpace(base=2, per_build=1, per_download=0.2)
        modules = self.root / "modules"
        catalogue = Catalogue(probe=probe, go="1.26", disk_gib=sizes, tools=tools, modules=modules)
        progress = Progress(Console(file=self.output))
        store = Store(self.root / "cache")
        return Installer(catalogue, store, progress, free_bytes=lambda _: 100 * 2**30)


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    shop = Workshop(tmp_path)
    go = tmp_path / "path" / "go"
    go.parent.mkdir()
    go.write_text(FAKE_GO)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_GO_CALLS", str(shop.calls))
    return shop


class Upstream:
    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url

    def publish(self, content: bytes, *, checksum: str | None = None) -> Release:
        archive = self.folder / "hello.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            member = tarfile.TarInfo("hello-1.0/hello")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        checksum = checksum or hashlib.sha256(archive.read_bytes()).hexdigest()
        (self.folder / "SHA256SUMS").write_text(f"{'0' * 64}  other.tar.gz\n{checksum}  hello.tar.gz\n")
        urls = {"url": f"{self.url}/hello.tar.gz", "checksums": f"{self.url}/SHA256SUMS"}
        return Release(**urls, members=("hello-{version}/hello",))


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[Upstream]:
    folder = tmp_path / "upstream"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    with server:
        threading.Thread(target=server.serve_forever).start()
        yield Upstream(folder, f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
