from __future__ import annotations

import base64
import hashlib
import io
import os
import shlex
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from config.data import jump_box
from config.data.versions import versions
from config.schema.jump_box import is_public_key
from config.schema.network import layout

TOOL = b"#!/bin/sh\necho it works\n"
RELEASE = "https://releases.example.com/v1/tool_Linux_amd64.tar.gz"
CURL = """#!/bin/bash
while [ $# -gt 1 ]; do if [ "$1" = --output ]; then out=$2; shift; fi; shift; done
cp "$WEB/${1##*/}" "$out"
"""


def archive() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as packed:
        member = tarfile.TarInfo("tool")
        member.size = len(TOOL)
        packed.addfile(member, io.BytesIO(TOOL))
    return content.getvalue()


ARCHIVE = archive()  # once, because gzip adds the time
GOOD = hashlib.sha256(ARCHIVE).hexdigest()


def install(tmp_path: Path, checksums: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    web, binaries, path = (tmp_path / name for name in ("web", "bin", "path"))
    for folder in (web, binaries, path):
        folder.mkdir()
    (web / "tool_Linux_amd64.tar.gz").write_bytes(ARCHIVE)
    (web / "sums").write_text(checksums)
    (path / "curl").write_text(CURL)
    (path / "curl").chmod(0o755)
    script = (
        f"{jump_box.FUNCTIONS.read_text('utf-8')}\nrelease tool {RELEASE} https://releases.example.com/v1/sums tool\n"
    )
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "WEB": str(web), "BIN": str(binaries)}
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return done, binaries / "tool"


@pytest.mark.parametrize(
    "checksums",
    [
        GOOD,
        f"{GOOD}  tool_Linux_amd64.tar.gz\n",
        f"{'0' * 64}  tool_Darwin_arm64.tar.gz\n{GOOD} *./dist/tool_Linux_amd64.tar.gz\n",
    ],
    ids=["alone", "with its name", "among others"],
)
def test_installs_a_release_with_the_right_checksum(checksums: str, tmp_path: Path) -> None:
    done, tool = install(tmp_path, checksums)
    assert done.returncode == 0, done.stderr
    assert tool.read_bytes() == TOOL
    assert os.access(tool, os.X_OK)


@pytest.mark.parametrize(
    "checksums",
    ["0" * 64, f"{GOOD}  tool_Darwin_arm64.tar.gz\n", "<html>not found</html>", ""],
    ids=["another", "of another file", "no checksum", "nothing"],
)
def test_rejects_other_releases(checksums: str, tmp_path: Path) -> None:
    done, tool = install(tmp_path, checksums)
    assert done.returncode != 0
    assert (
        "tool does not match its checksum in https://releases.example.com/v1/sums; it is not installed" in done.stderr
    )
    assert not tool.exists()


def test_cloud_init_installs_all_tools() -> None:
    text = base64.b64decode(jump_box.custom_data()).decode()
    assert text.startswith("#cloud-config\n")
    config = yaml.safe_load(text)
    [script] = config["write_files"]
    assert config["runcmd"] == [[script["path"]]]
    assert script["content"] == jump_box.installer()
    subprocess.run(["bash", "-n", "-c", script["content"]], check=True)
    calls = [
        shlex.split(line)[:2] for line in script["content"].splitlines() if line.startswith(("release ", "package "))
    ]
    assert calls[0] == ["package", "azure-cli=2.76.0-1~noble"]
    assert [name for _, name in calls[1:]] == ["kubectl", "kubelogin", "k9s", "pulumi"]
    assert len(jump_box.custom_data()) < 64 * 1024, "Azure's limit for custom data, in base64"


def test_urls_contain_the_pinned_versions() -> None:
    for tool in jump_box.jump_box().tools.values():
        assert all("{version}" in url and url.startswith("https://") for url in (tool.url, tool.checksums))
    kubernetes = versions().kubernetes
    assert jump_box.jump_box().tools["kubectl"].version == kubernetes.newest[kubernetes.default]


@pytest.mark.parametrize("space", ["10.0.0.0/24", "10.0.0.0/15", "172.16.0.0/12"])
def test_the_subnets_fit_every_address_space(space: str) -> None:
    found = layout(space)
    subnets = (found.nodes, found.endpoints, found.jump_box, found.bastion)
    assert found.bastion.prefixlen == 26, "the smallest subnet for a Bastion"
    assert all(not one.overlaps(other) for one in subnets for other in subnets if one is not other)


def test_accepts_an_rsa_key_that_is_long_enough() -> None:
    key = (
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQDt0bEtu0X/2eugf8RJyEXtFIhKmKrciKOTbgyniyiqEYxGWa31GkZXrfKGMmzb"
        "3V5jbrel/RJljV9CEB6paMyL1TkBnd5pTzwhOpb6TZ6kt8kEEtjxdRAqWAIlwgjX8x4ZuLtwpiEbOrjYnf+Jqajxz1wTDcQpAa+O"
        "KSb6uA2XC3IgkHtk+DTEXzlRIJrie4f/2rarGmvgmdAPxTBI1njcRq5PolutyL6PcJxQCLgq6YXYqlGJjZlCiLUoJb475WKz0lW8"
        "v7bO0/CpRl12rowp4BaV6/WVu0FkFMo73zft3gvTDON36DCCHJInCv/k2lu6+zXG8EIH1mXpERqw5aPt me"
    )
    assert is_public_key(key)
    assert not is_public_key(key[:300]), "truncated"
