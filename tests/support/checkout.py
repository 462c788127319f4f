"""A copy of this repository's files, and a user's commands in it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from simulator.host import paths
from simulator.host.processes import MARK
from tests.support.world import CommandFailed


@dataclass(frozen=True)
class Checkout:
    folder: Path
    scratch: Path
    """Its commands' TMPDIR and home folder."""

    @classmethod
    def copy(cls, folder: Path) -> Checkout:
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True).stdout
        for name in listed.split("\0"):
            if name and (paths.ROOT / name).is_file():
                (folder / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(paths.ROOT / name, folder / "checkout" / name)
        for place, folders, _ in os.walk(paths.ROOT / "simulator" / "charts"):
            for link in (Path(place, name) for name in folders):
                if link.is_symlink():  # to a chart or CRDs in a Go module
                    (folder / "checkout" / link.relative_to(paths.ROOT)).symlink_to(link.readlink())
        (folder / "tmp").mkdir()
        return cls(folder / "checkout", folder / "tmp")

    @property
    def home(self) -> Path:
        return self.folder / ".simulator"

    def environment(self, changes: Mapping[str, str]) -> dict[str, str]:
        hidden = ("SIMULATOR_", "PULUMI_", "PYTHON", "MAKE", "STACK", "KUBECONFIG")
        shared = "PYTHONPYCACHEPREFIX"  # compiling the SDKs in each checkout would take most of the tests' time
        kept = {key: value for key, value in os.environ.items() if key == shared or not key.startswith(hidden)}
        places = {"TMPDIR": str(self.scratch), "HOME": str(self.scratch), "AI_ON_AKS_CACHE": str(paths.cache())}
        return {**kept, **places, **changes}

    def run(self, *command: str, check: bool = True, **changes: str) -> subprocess.CompletedProcess[str]:
        answer = subprocess.run(
            command, cwd=self.folder, env=self.environment(changes), capture_output=True, text=True, check=False
        )
        if check and answer.returncode:
            raise CommandFailed(f"{' '.join(command)}\n{answer.stdout}\n{answer.stderr}")
        return answer

    def make(self, target: str, *, check: bool = True, **changes: str) -> subprocess.CompletedProcess[str]:
        return self.run("make", "-s", target, check=check, **changes)

    def inside(self, command: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run("bash", "-c", f'eval "$(make -s env)" && {command}', check=check)

    def begin(self, target: str) -> subprocess.Popen[str]:
        """Starts `make <target>` in a new process group.

        The process handles Ctrl-C, even if the tests run in the background and ignore it.
        """
        return subprocess.Popen(
            ["make", "-s", target],
            cwd=self.folder,
            env=self.environment({}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def files(self) -> set[str]:
        """Returns all files and folders except the simulator's."""
        found = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}
        found |= {str(path) for path in self.scratch.rglob("*")}
        return {name for name in found if name.split("/")[0] != ".simulator"}


def processes(home: Path, program: str = "") -> list[int]:
    return [pid for pid, name in _with(f"{MARK}={home.resolve()}") if program in ("", name)]


def clients(home: Path) -> list[int]:
    """Returns the processes of pulumi, its plugins and their children for the simulator in `home`."""
    return [pid for pid, _ in _with(f"PULUMI_HOME={home.resolve()}/pulumi")]


def kill(pids: list[int], how: signal.Signals = signal.SIGKILL) -> None:
    for pid in pids:
        try:
            os.kill(pid, how)
        except ProcessLookupError:  # already ended
            continue


def listening(port: int) -> bool:
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[1] == f"0100007F:{port:04X}" and line.split()[3] == "0A" for line in lines)


def _with(setting: str) -> list[tuple[int, str]]:
    """Returns ids and executables' names of processes with an environment variable."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if setting.encode() in (entry / "environ").read_bytes().split(b"\0") and int(entry.name) != os.getpid():
                found.append((int(entry.name), (entry / "exe").readlink().name))
        except OSError:  # ended, or another user's
            continue
    return found
