from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from simulator.host import interrupts
from simulator.tools.errors import ToolError
from tests.unit.simulator.tools.conftest import UNREACHABLE, Upstream, Workshop


def run(executable: Path) -> str:
    return subprocess.run([executable], capture_output=True, text=True, check=True).stdout.strip()


def test_builds_once_and_links(workshop: Workshop) -> None:
    tool = workshop.tool()
    for _ in range(2):
        workshop.installer(tool).install([tool])
    assert run(workshop.root / "cache" / "bin" / "hello") == "made"
    assert workshop.builds == 1
    assert "[1/1] hello 1.0: built (0:00)" in workshop.log


def test_another_version_or_pin_is_built_again(workshop: Workshop) -> None:
    tool = workshop.tool()
    workshop.installer(tool).install([tool])
    newer = workshop.tool(version="1.1")
    workshop.installer(newer).install([newer])
    assert workshop.builds == 2
    (workshop.root / "modules" / "hello" / "go.sum").write_text("another pin\n")
    workshop.installer(newer).install([newer])
    assert workshop.builds == 3


def test_failed_build_shows_the_end_of_its_log(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_GO_THEN", "echo main.go:3: undefined: thing; exit 2")
    tool = workshop.tool()
    with pytest.raises(ToolError, match=r"could not be built.*\n.*undefined: thing\n.*same command") as raised:
        workshop.installer(tool).install([tool])
    assert "/cache/logs/hello-1.0-" in str(raised.value)
    assert not list((workshop.root / "cache").glob("**/hello"))


def test_downloads_where_the_internet_is_open(workshop: Workshop, upstream: Upstream) -> None:
    tool = workshop.tool(release=upstream.publish(b"#!/bin/sh\necho released\n"))
    workshop.installer(tool, probe=upstream.url).install([tool])
    assert run(workshop.root / "cache" / "bin" / "hello") == "released"
    assert workshop.builds == 0
    assert "downloaded" in workshop.log


def test_rejects_a_wrong_checksum(workshop: Workshop, upstream: Upstream) -> None:
    tool = workshop.tool(release=upstream.publish(b"tampered", checksum="f" * 64))
    with pytest.raises(ToolError, match=r"(?s)has a wrong checksum.*should be f{64}.*SHA256SUMS"):
        workshop.installer(tool, probe=upstream.url).install([tool])
    assert not (workshop.root / "cache" / "bin").exists()
    assert workshop.builds == 0, "a changed download stops the installation"


def test_builds_when_the_download_fails(workshop: Workshop, upstream: Upstream) -> None:
    release = upstream.publish(b"").model_copy(update={"checksums": f"{UNREACHABLE}SHA256SUMS"})
    tool = workshop.tool(release=release)
    workshop.installer(tool, probe=upstream.url).install([tool])
    assert run(workshop.root / "cache" / "bin" / "hello") == "made"
    assert "building it instead" in workshop.log


def test_two_runs_side_by_side_build_once(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_GO_THEN", "sleep 1")
    tool = workshop.tool()
    runs = [threading.Thread(target=workshop.installer(tool).install, args=([tool],)) for _ in range(2)]
    for each in runs:
        each.start()
    for each in runs:
        each.join()
    assert workshop.builds == 1
    waited = workshop.log.partition("Another process is installing tools")[2]
    assert waited.count("[1/1] hello 1.0: building (0:0") == 2, "both runs show the step"


INTERRUPTED = """
import sys
from pathlib import Path
from simulator.tools import __main__ as cli, catalogue
from tests.support.waiting import eventually
from tests.unit.simulator.tools.conftest import Workshop, UNREACHABLE
root = Path(sys.argv[1])
tool = Workshop.tool(None)
sizes = {"base": 0, "per_build": 0, "per_download": 0}
fake = catalogue.Catalogue(probe=UNREACHABLE, go="1.26", disk_gib=sizes, tools=(tool,), modules=root / "modules")
catalogue.load = lambda: fake
sys.exit(cli.main([]))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_build_leaves_no_partial_tool(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    cache = workshop.root / "cache"
    environment = {**os.environ, "AI_ON_AKS_CACHE": str(cache), "FAKE_GO_THEN": "sleep 20"}
    command = [sys.executable, "-c", INTERRUPTED, str(workshop.root)]
    handle = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # tests in the background ignore it
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=handle) as process:
        deadline = time.monotonic() + 30
        while not workshop.builds and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(how)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == (-signal.SIGKILL if how == signal.SIGKILL else interrupts.INTERRUPTED)
    assert "Traceback" not in errors
    assert not list(cache.glob("bin*"))
    if how != signal.SIGKILL:
        assert errors.endswith("Interrupted. Finished tools are kept; to continue, run the same command.\n")
        assert not (cache / "staging").exists()
    monkeypatch.delenv("FAKE_GO_THEN", raising=False)
    tool = workshop.tool()
    workshop.installer(tool).install([tool])
    assert run(cache / "bin" / "hello") == "made"
