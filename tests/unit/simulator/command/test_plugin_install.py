from __future__ import annotations

import functools
import io
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from simulator.command import emulated_plugins, environment
from simulator.host import paths
from simulator.plugins import azure_native, kubernetes

VERSIONS = {"azure-native": azure_native.VERSION, "kubernetes": kubernetes.VERSION}
OFFICIAL = '#!/bin/sh\necho "official $*"\n'
EMULATED = '#!/bin/sh\necho "emulated $*"\n'


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The emulated plugins' interpreter is a script that prints its arguments."""
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path / "home"))
    interpreter = tmp_path / "python"
    interpreter.write_text(EMULATED)
    interpreter.chmod(0o755)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: test\nruntime: python\n")
    return folder


@pytest.fixture
def downloads(tmp_path: Path) -> Iterator[str]:
    """Archives are named as on get.pulumi.com."""
    served = tmp_path / "served"
    served.mkdir()
    for name, version in VERSIONS.items():
        for architecture in ("amd64", "arm64"):
            file = served / f"pulumi-resource-{name}-v{version}-linux-{architecture}.tar.gz"
            with tarfile.open(file, "w:gz") as archive:
                member = tarfile.TarInfo(f"pulumi-resource-{name}")
                member.mode, member.size = 0o755, len(OFFICIAL)
                archive.addfile(member, io.BytesIO(OFFICIAL.encode()))
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(served))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def plugins() -> Path:
    return paths.home() / "pulumi" / "plugins"


def started(name: str, project: Path) -> str:
    """The CLI starts the plugin from the folder with build metadata."""
    launcher = plugins() / f"resource-{name}-v{VERSIONS[name]}+simulator" / f"pulumi-resource-{name}"
    own = {"SIMULATOR_PYTHON": str(project.parent / "python"), "PATH": "/usr/bin:/bin"}
    return subprocess.run([launcher, "127.0.0.1:1"], env=own, capture_output=True, text=True, check=True).stdout


def serving(name: str) -> Path:
    return next(each.serving() for each in emulated_plugins.ALL if each.name == f"pulumi-resource-{name}")


def emulated(name: str) -> Path:
    return paths.ROOT / "simulator" / "plugins" / "bin" / f"pulumi-resource-{name}"


def official(name: str) -> Path:
    return plugins().resolve() / f"resource-{name}-v{VERSIONS[name]}" / f"pulumi-resource-{name}"


@pytest.mark.simulator
@pytest.mark.parametrize("arguments", [(), ("resource", "kubernetes", kubernetes.VERSION)])
def test_plain_plugin_install_installs_the_official_plugin(
    arguments: tuple[str, ...], project: Path, downloads: str
) -> None:
    environment.settings()
    assert started("kubernetes", project).startswith("emulated -m simulator.plugins.kubernetes")
    own = {"PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES": f".*={downloads}", "PULUMI_DISABLE_REGISTRY_RESOLVE": "true"}
    command = [str(paths.tool("pulumi")), "plugin", "install", *arguments]
    subprocess.run(command, cwd=project, env=environment.environment() | own, check=True, timeout=240)
    expected = {name for name in VERSIONS if not arguments or name in arguments}
    for name in VERSIONS:
        who = "official" if name in expected else f"emulated -m simulator.plugins.{name.replace('-', '_')}"
        assert started(name, project) == f"{who} 127.0.0.1:1\n"
        assert serving(name) == (official(name) if name in expected else emulated(name))


@pytest.mark.parametrize("name", VERSIONS)
def test_an_official_plugin_serves_once_it_is_unpacked(name: str, project: Path) -> None:
    """`pulumi plugin install` keeps a lock beside the folder while it runs, and a mark until it has unpacked."""
    environment.settings()
    partial = plugins() / f"resource-{name}-v{VERSIONS[name]}.partial"
    partial.with_suffix(".lock").touch()
    assert serving(name) == emulated(name)
    partial.touch()
    official(name).parent.mkdir()
    official(name).write_text(OFFICIAL)
    official(name).chmod(0o755)
    assert started(name, project).startswith("emulated")
    assert serving(name) == emulated(name)
    partial.unlink()
    environment.settings()
    assert started(name, project) == "official 127.0.0.1:1\n"
    assert serving(name) == official(name)
    official(name).unlink()
    assert started(name, project).startswith("emulated")
    assert serving(name) == emulated(name)
