from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

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
        eventually(lambda: _listens(shim))
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


def _listens(shim: Shim) -> bool:
    try:
        shim.connect(PORT).close()
    except (ShimError, OSError):
        return False
    return True


def test_runs_as_jovyan_with_the_share_in_its_home(server: Shim) -> None:
    code, output = run(server, "bash", "-c", f"id -u; id -g; pwd; echo kept >{HOME}/work/note; ls {HOME}")
    assert (code, output.split()) == (0, ["1000", "100", HOME, "work"])


def test_runs_a_notebook(server: Shim) -> None:
    code, output = run(server, "python3", "-c", NOTEBOOK)
    assert (code, output.split()[-1:]) == (0, ["42"])
