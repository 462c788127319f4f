from __future__ import annotations

import os
import re
import resource
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.data import skus
from simulator.host.paths import ROOT
from simulator.sandbox import executables, sandbox
from simulator.sandbox.spec import SandboxSpec
from simulator.world.hardware import node_hardware
from tests.support.waiting import eventually
from tests.unit.simulator.sandbox.tools import mounted_program

NODE = "aks-gpu-22222222-vmss000000"
READ_ONLY, MISSING = "Read-only file system", "No such file or directory"
ATTEMPTS = {
    "read the machine's passwords": ("cat /etc/shadow", MISSING),
    "read the machine's homes": ("ls /home || ls /root/.cache", MISSING),
    "read this repository": ("ls {root}", MISSING),
    "write to a system folder of the machine": ("touch /usr/bin/sort", READ_ONLY),
    "write to /sys": ("touch /sys/class/infiniband/mlx5_0/fw_ver", READ_ONLY),
    "write to the world": ("echo '{{}}' > /run/simulator/world/world.json", READ_ONLY),
    "write to the simulator's code": ("touch /opt/simulator/lib/simulator/sandbox/library/main.py", READ_ONLY),
    "open a block device": ("ls /dev/vda /dev/sda /dev/nvme0n1 /dev/mapper", MISSING),
    "see a process of the machine": ("ls /proc/{pid}/fd", MISSING),
    "signal a process of the machine": ("kill -0 {pid}", "No such process"),
    "reach the network": ("exec 3<>/dev/tcp/127.0.0.1/{port}", "Connection refused"),
    "reach the internet": ("exec 3<>/dev/tcp/1.1.1.1/53", "Network is unreachable"),
    "open the devices of memory": ("head -c1 /dev/mem /dev/kmsg", MISSING),
    "change the kernel": ("cat /proc/sys/kernel/panic > /proc/sys/kernel/panic", READ_ONLY),
    "press the machine's reset keys": ("echo h > /proc/sysrq-trigger", f"{READ_ONLY}|{MISSING}"),
    "move the machine's interrupts": (
        "for file in /proc/irq/*/smp_affinity; do : > $file && exit 0; done; exit 1",
        f"{READ_ONLY}|{MISSING}",
    ),
    "read the machine's memory": (
        "stat -c 'it has %s bytes' /proc/kcore; test -s /proc/kcore",
        f"it has 0 bytes|{MISSING}",
    ),
    "create namespaces": ("unshare --user true", "unshare failed"),
}
"""Each attempt's script and expected error, which must not be a missing program."""


@pytest.fixture
def run_folder() -> Iterator[Path]:
    """Other users can read the folder."""
    folder = Path(tempfile.mkdtemp(prefix="sandbox-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def _spec(folder: Path, script: str, **changes: object) -> SandboxSpec:
    (folder / "world").mkdir(exist_ok=True)
    (folder / "world" / "world.json").write_text('{"nodes": {}, "pods": {}}')
    hardware = node_hardware(skus.sku("Standard_ND96isr_H100_v5"), NODE)
    settings: dict[str, object] = {"capabilities": frozenset({"IPC_LOCK"}), **changes}
    return SandboxSpec(
        pod="ai/probe",
        image="nccl-test",
        argv=("/bin/bash", "-c", script),
        hostname="probe",
        hardware=hardware,
        run_dir=folder / "run",
        world_dir=folder / "world",
        **settings,  # type: ignore[arg-type]
    )


def _run(spec: SandboxSpec) -> tuple[int, str]:
    log = spec.run_dir.parent / "log"
    with log.open("wb") as stream:
        code = sandbox.start(spec, stream.fileno()).wait(30)
    return code, log.read_text()


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_script_cannot_reach_the_machine(run_folder: Path, attempt: str) -> None:
    script, error = ATTEMPTS[attempt]
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = {"pid": os.getpid(), "port": server.getsockname()[1], "root": ROOT}
        code, log = _run(_spec(run_folder, script.format(**words), mounts=mounted_program("unshare")))
    assert code != 0, f"it could {attempt}: {log}"
    assert re.search(error, log), f"it did not try to {attempt}: {log}"


def test_a_shell_sees_only_its_image(run_folder: Path) -> None:
    script = "id -u; hostname; echo $HOSTNAME; ls / /dev/nvidia* /dev/infiniband /sys/class/infiniband"
    code, log = _run(_spec(run_folder, script, gpus=(0, 1), hcas=("mlx5_2",)))
    assert code == 0, log
    lines = log.split()
    assert lines[:3] == ["0", "probe", "probe"]
    assert set(lines) >= {"/dev/nvidia0", "/dev/nvidia1", "uverbs2", "mlx5_8"}
    assert not set(lines) & {"/dev/nvidia2", "uverbs0", "home", "work", "boot"}


@pytest.mark.parametrize(("capabilities", "most"), [(frozenset(), 64), (frozenset({"IPC_LOCK"}), None)])
def test_locked_memory_follows_the_capability(run_folder: Path, capabilities: frozenset[str], most: int | None) -> None:
    """`most` is in KiB. This machine's limit may be lower."""
    hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    limits = [limit for limit in (most, None if hard == resource.RLIM_INFINITY else hard // 1024) if limit is not None]
    _, log = _run(_spec(run_folder, "ulimit -l", capabilities=capabilities))
    assert log.strip() == (str(min(limits)) if limits else "unlimited")


def test_shared_memory_has_its_size(run_folder: Path) -> None:
    code, log = _run(_spec(run_folder, "head -c 2M /dev/zero > /dev/shm/full", shm_bytes=2**20))
    assert code != 0
    assert "No space left" in log


def test_the_environment_has_no_variables_of_the_machine(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARM_CLIENT_SECRET", "hush")
    _, log = _run(_spec(run_folder, "env", env={"ROLE": "probe"}))
    assert "hush" not in log
    assert "ROLE=probe" in log


def test_killing_the_process_ends_all_processes_of_the_sandbox(run_folder: Path) -> None:
    marker = f"86399.{os.getpid()}"
    with (run_folder / "log").open("wb") as stream:
        process = sandbox.start(_spec(run_folder, f"sleep {marker} & sleep {marker}"), stream.fileno())
        eventually(lambda: len(_sleepers(marker)) == 2)
        process.kill()
        process.wait(10)
    eventually(lambda: not _sleepers(marker))


def test_the_error_names_a_missing_program() -> None:
    with pytest.raises(executables.MissingExecutables, match="no-such-program"):
        executables.binds(("bash", "no-such-program"))


def _sleepers(marker: str) -> list[Path]:
    return [path for path in Path("/proc").glob("[0-9]*/cmdline") if f"sleep\0{marker}" in _read(path)]


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the process has ended
        return ""
