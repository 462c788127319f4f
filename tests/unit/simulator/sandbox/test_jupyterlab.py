"""JupyterLab itself, in the sandbox of its image, as its Deployment has it: its password, its user, its kernels."""

from __future__ import annotations

import contextlib
import http.client
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from config.data import skus
from simulator.kubelet.shim_client import Shim, ShimError
from simulator.sandbox import sandbox
from simulator.sandbox.spec import Mount, SandboxSpec
from simulator.world.hardware import node_hardware
from tests.support.waiting import eventually
from tests.unit.simulator.sandbox.test_shim import run
from workloads.jupyterlab.manifests import HOME, PORT, SERVER_CONFIG, hashed, server_config

NOTEBOOK = """
import asyncio, nbformat, nbclient
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(6 * 7)")])
nbclient.execute(notebook)
print(notebook.cells[0].outputs[0].text.strip())
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shim]:
    folder = tmp_path_factory.mktemp("jupyterlab")
    for name in ("world", "configuration", "work"):
        (folder / name).mkdir()
    (folder / "world" / "world.json").write_text('{"nodes": {}, "pods": {}}')
    (folder / "configuration" / SERVER_CONFIG).write_text(server_config(hashed("open-sesame", "test")))
    process = _start(folder)
    shim = Shim(folder / "run")
    try:
        eventually(lambda: _answers(shim))
        yield shim
    finally:
        process.kill()
        process.wait()


def _start(folder: Path) -> subprocess.Popen[bytes]:
    files = Mount(folder / "configuration", "/usr/local/etc/jupyter")
    work = Mount(folder / "work", f"{HOME}/work", read_only=False)
    spec = SandboxSpec(
        pod="ai/jupyterlab",
        image="pytorch-notebook",
        argv=(),
        hostname="jupyterlab",
        hardware=node_hardware(skus.sku("Standard_ND96isr_H100_v5"), "n"),
        run_dir=folder / "run",
        world_dir=folder / "world",
        mounts=(files, work),
        user=1000,
        group=100,
    )
    return sandbox.start(spec, subprocess.DEVNULL)


def _answers(shim: Shim) -> bool:
    try:
        return ask(shim, "GET", "/api").status == 200
    except (ShimError, OSError):  # it does not listen yet
        return False


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    body: bytes


def ask(shim: Shim, method: str, path: str, **request: Any) -> Answer:
    with contextlib.closing(http.client.HTTPConnection("localhost", PORT, timeout=30)) as connection:
        connection.sock = shim.connect(PORT)
        connection.request(method, path, **request)
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())


def log_in(shim: Shim, password: str) -> Mapping[str, str]:
    """The headers of one who has tried this password."""
    cookies = _cookies(ask(shim, "GET", "/login"))
    form = urlencode({"password": password, "_xsrf": cookies["_xsrf"]})
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": _header(cookies)}
    answered = ask(shim, "POST", "/login", body=form, headers=headers)
    return {"Cookie": _header(cookies | _cookies(answered))}


def _cookies(answer: Answer) -> dict[str, str]:
    lines = answer.headers.get_all("Set-Cookie") or []
    return dict(re.findall(r"^([^=]+)=([^;]*)", "\n".join(lines), re.MULTILINE))


def _header(cookies: Mapping[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


def test_nothing_is_shown_without_a_login(server: Shim) -> None:
    assert ask(server, "GET", "/lab").headers["Location"] == "/login?next=%2Flab"
    assert ask(server, "GET", "/api/contents").status == 403


def test_the_password_of_which_the_cluster_has_the_hash_opens_it(server: Shim) -> None:
    assert ask(server, "GET", "/api/contents", headers=log_in(server, "open-sesame")).status == 200
    page = ask(server, "GET", "/lab", headers=log_in(server, "open-sesame"))
    assert b"<title>JupyterLab</title>" in page.body


def test_another_password_does_not(server: Shim) -> None:
    assert ask(server, "GET", "/api/contents", headers=log_in(server, "guess")).status == 403


def test_it_runs_as_jovyan_and_keeps_files_in_the_share(server: Shim) -> None:
    code, said = run(server, "bash", "-c", f"id -u; id -g; pwd; echo kept >{HOME}/work/note; ls {HOME}")
    assert (code, said.split()) == (0, ["1000", "100", HOME, "work"])


def test_a_notebook_runs(server: Shim) -> None:
    code, said = run(server, "python3", "-c", NOTEBOOK)
    assert (code, said.split()[-1:]) == (0, ["42"])
