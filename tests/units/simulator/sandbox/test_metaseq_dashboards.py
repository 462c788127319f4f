"""Metaseq's dashboards: what the simulated trainer records, and the `aim` and `tensorboard` that show it."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import re
import shlex
import threading
import time
from pathlib import Path

import pytest

from simulator.kubelet.shim import Shim, ShimError
from simulator.sandbox import sandbox
from simulator.sandbox.commands import aim, tensorboard
from simulator.sandbox.library import scalars
from simulator.sandbox.library.dashboard import Dashboard
from tests.units.simulator.sandbox.job import MetaseqJob
from workloads.metaseq.workload import DASHBOARDS

RUN = "0123456789abcdef01234567"


class Worker:
    """The container of rank 0, as `kubectl exec` and `kubectl port-forward` reach it."""

    def __init__(self, job: MetaseqJob) -> None:
        self._shim = Shim(job.folder / "mpiworker-0")
        self._log = job.folder / "exec.log"

    def start(self, command: str) -> None:
        """Runs a command that does not end by itself."""
        threading.Thread(target=self.run, args=(command,), daemon=True).start()

    def run(self, command: str) -> int:
        """Exit code; what it prints goes to `log`."""
        gone_with_its_job = contextlib.suppress(ShimError)
        with self._log.open("ab") as log, Path("/dev/null").open("rb") as nothing, gone_with_its_job:
            return self._shim.run(shlex.split(command), [nothing.fileno(), log.fileno(), log.fileno()])
        return -1

    @property
    def log(self) -> str:
        return self._log.read_text()

    def get(self, port: int, path: str, containing: str = "") -> str:
        """The body at a path, once the server listens and the body contains that."""
        deadline = time.monotonic() + 20
        text = ""
        while time.monotonic() < deadline:
            connection = http.client.HTTPConnection("localhost")
            not_listening_yet = contextlib.suppress(ShimError)
            with contextlib.closing(connection), not_listening_yet:
                connection.sock = self._shim.connect(port)
                connection.request("GET", path)
                text = connection.getresponse().read().decode()
                if containing in text:
                    return text
            time.sleep(0.2)
        raise AssertionError(f"{containing!r} is not in {text!r}; {self.log}")


@pytest.fixture(scope="module", autouse=True)
def _needs_sandbox() -> None:
    assert sandbox.available() is None


def test_dashboards_show_what_rank_0_has_recorded(tmp_path: Path) -> None:
    job = MetaseqJob(tmp_path, options={"modelSize": "66b", "aim": True, "tensorboard": True})
    pages: dict[str, str] = {}

    def look() -> None:
        worker = Worker(job)
        for name, (command, port) in DASHBOARDS.items():
            worker.start(command)
            pages[name] = worker.get(port, "/", containing="5 updates, ended")
        pages["loss"] = worker.get(6018, "/data/plugin/scalars/scalars?run=train_inner&tag=loss")
        pages["log"] = worker.log

    code, log = job.run(look)
    assert code == 0, log
    assert "<title>Aim: the simulator&#x27;s stand-in</title>" in pages["aim"]
    assert "<h2>train_inner: 5 updates, ended</h2>" in pages["tensorboard"]
    logged = [float(loss) for loss in re.findall(r'"loss": "([0-9.]+)"', log)]
    points = json.loads(pages["loss"])
    assert [point[1] for point in points] == [1, 2, 3, 4, 5]
    assert [point[2] for point in points] == pytest.approx(logged)
    assert "Setting tensorboard directory to /workspace/tensorboard0000/train_inner" in log
    assert "Open http://127.0.0.1:43800" in pages["log"]
    assert "TensorBoard 2.8.0 at http://localhost:6018/ (Press CTRL+C to quit)" in pages["log"]


def test_without_the_setting_there_is_nothing_to_show(tmp_path: Path) -> None:
    job = MetaseqJob(tmp_path, nodes=1, options={"modelSize": "6.7b"})
    codes: list[int] = []
    code, log = job.run(lambda: codes.append(Worker(job).run(DASHBOARDS["aim"][0])))
    assert (code, codes) == (0, [2]), log
    assert (
        "Error: Invalid value for '--repo': Directory '/workspace/aim' does not exist."
        in (tmp_path / "exec.log").read_text()
    )


# --- the pages ---


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One run of Aim in progress, of two updates, whose third line is being written."""
    lines = [scalars.line(step, {"loss": 12 - step, "lr": 0.0001}) for step in (1, 2)]
    scalars.aim_run(tmp_path, RUN).write_text("\n".join([*lines, '{"wall_time": 17']))
    return tmp_path


def dashboard(repository: Path) -> Dashboard:
    return Dashboard("Aim", lambda: scalars.aim_runs(repository), {})


def test_a_training_in_progress_has_what_is_written_so_far(repository: Path) -> None:
    status, kind, page = dashboard(repository).answer("/")
    assert (status, kind) == (200, "text/html; charset=utf-8")
    assert f"<h2>{RUN}: 2 updates, in progress</h2>" in page
    assert "<td>loss</td><td>10</td>" in page
    assert '<polyline points="0.0,0.0 300.0,90.0"' in page, "the loss falls"


def test_scalars_come_as_json_too(repository: Path) -> None:
    _, kind, text = dashboard(repository).answer("/scalars.json")
    assert kind == "application/json"
    found = json.loads(text)[RUN]
    assert [point[1:] for point in found["scalars"]["loss"]] == [[1, 11], [2, 10]]
    assert found["ended"] is False


def test_long_curves_are_thinned_and_keep_their_newest_point(repository: Path) -> None:
    with scalars.aim_run(repository, RUN).open("w") as file:
        file.writelines(scalars.line(step, {"loss": step}) + "\n" for step in range(1, 2501))
    (run,) = scalars.aim_runs(repository)
    assert 500 < len(run.curves["loss"]) <= scalars.SAMPLES
    assert run.curves["loss"][-1][1] == 2500


def test_pages_without_runs_say_so(tmp_path: Path) -> None:
    assert "There are no runs." in dashboard(tmp_path).answer("/")[2]


def test_what_is_not_there_is_not_found(repository: Path) -> None:
    assert dashboard(repository).answer("/api/projects/")[0] == 404


# --- command lines ---


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("up --ports 1", "No such option: --ports"),
        ("up --port", "Option '--port' requires an argument."),
        ("up --port x", "Invalid value for '-p' / '--port': 'x' is not a valid integer."),
        ("up --repo /none", "Invalid value for '--repo': Directory '/none' does not exist."),
        ("up /workspace/aim", "Got unexpected extra argument (/workspace/aim)"),
        ("up --profiler", "simulator: --profiler is not simulated"),
        ("ui", "No such command 'ui'."),
        ("", "Missing command."),
    ],
)
def test_a_command_line_that_aim_refuses(words: str, error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert aim.main(words.split()) == 2
    assert f"Error: {error}" in capsys.readouterr().err


@pytest.mark.parametrize(("answer", "code", "said"), [("", 1, "Aborted!"), ("n\n", 0, "please run the following")])
def test_aim_asks_before_it_makes_a_repository(
    answer: str,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert aim.main(["up", "--repo", str(tmp_path)]) == code
    captured = capsys.readouterr()
    assert f"'{tmp_path}' is not a valid Aim repository." in captured.out
    assert said in captured.out + captured.err


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        ("--log-dir=/x", 2, "unrecognized arguments: --log-dir=/x"),
        ("--logdir", 2, "argument --logdir: expected one argument"),
        ("--port 6018", 1, "A logdir or db must be specified."),
        ("--logdir /x --host 0.0.0.0 --bind_all", 1, "Must not specify both --host and --bind_all."),
        ("--logdir /x --inspect", 1, "simulator: tensorboard is simulated with --logdir, not with --inspect"),
    ],
)
def test_a_command_line_that_tensorboard_refuses(
    words: str, code: int, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = tensorboard.main(words.split())
    except SystemExit as ended:
        found = int(str(ended.code))
    assert found == code
    assert error in capsys.readouterr().err


def test_a_port_that_is_taken(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with dashboard(repository).server("127.0.0.1", 0) as taken:
        port = str(taken.server_port)
        assert tensorboard.main(["--logdir", str(repository), "--host", "127.0.0.1", "--port", port]) == 255
        assert f"could not bind to port {port}, it was already in use" in capsys.readouterr().err
        assert aim.main(["up", "--repo", str(repository), "--port", port]) == 0
        assert "Failed to run Aim UI." in capsys.readouterr().out
