"""Making tools: what is made, what is kept, and what the user is told when it cannot be."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from simulator.host import interrupts
from simulator.tools.errors import ToolError
from tests.support.waiting import eventually
from tests.units.simulator.tools.conftest import NOWHERE, Site, Workshop


def run(executable: Path) -> str:
    return subprocess.run([executable], capture_output=True, text=True, check=True).stdout.strip()


def test_builds_once_and_links(workshop: Workshop) -> None:
    tool = workshop.tool()
    for _ in range(2):
        workshop.installer(tool).install([tool])
    assert run(workshop.root / "cache" / "bin" / "hello") == "made"
    assert workshop.builds == 1
    assert "[1/1] hello 1.0: built (0:00)" in workshop.said


def test_another_version_or_pin_is_made_anew(workshop: Workshop) -> None:
    tool = workshop.tool()
    workshop.installer(tool).install([tool])
    newer = workshop.tool(version="1.1")
    workshop.installer(newer).install([newer])
    assert workshop.builds == 2
    (workshop.root / "modules" / "hello" / "go.sum").write_text("another pin\n")
    workshop.installer(newer).install([newer])
    assert workshop.builds == 3


def test_real_go_builds_a_module(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    (workshop.root / "path" / "go").unlink()
    if not shutil.which("go"):
        pytest.skip("Go is not installed")
    caches = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    monkeypatch.setenv("GOCACHE", caches)
    shutil.copytree(Path(__file__).parent / "go_module", workshop.root / "modules" / "hello", dirs_exist_ok=True)
    source = {"module": "hello", "package": "example.test/hello", "ldflags": "-X main.version=v{version}"}
    tool = workshop.tool(build=source)
    workshop.installer(tool).install([tool])
    hello = subprocess.run([workshop.root / "cache" / "bin" / "hello"], capture_output=True, text=True, check=True)
    assert hello.stderr == "hello v1.0\n"


def test_failed_build_shows_the_end_of_its_log(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_GO_THEN", "echo main.go:3: undefined: thing; exit 2")
    tool = workshop.tool()
    with pytest.raises(ToolError, match=r"could not be built.*\n.*undefined: thing\n.*same command") as raised:
        workshop.installer(tool).install([tool])
    assert "/cache/logs/hello-1.0-" in str(raised.value)
    assert not list((workshop.root / "cache").glob("**/hello"))


def test_no_disk_space(workshop: Workshop) -> None:
    tool = workshop.tool()
    with pytest.raises(ToolError, match=r"1\.5 GiB are free, 3\.0 GiB are needed.*\n.*AI_ON_AKS_CACHE="):
        workshop.installer(tool, free_gib=1.5).install([tool])
    assert workshop.builds == 0


def test_go_missing(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(workshop.root))
    tool = workshop.tool()
    with pytest.raises(ToolError, match=r"(?s)Go 1\.26 is needed to build hello.*no `go` on PATH.*https://go\.dev/dl"):
        workshop.installer(tool).install([tool])


@pytest.mark.parametrize(("version", "enough"), [("go1.25.9", False), ("go1.26", True), ("go1.30.1", True)])
def test_age_of_go(workshop: Workshop, monkeypatch: pytest.MonkeyPatch, version: str, enough: bool) -> None:
    monkeypatch.setenv("FAKE_GO_VERSION", version)
    tool = workshop.tool()
    if enough:
        workshop.installer(tool).install([tool])
    else:
        with pytest.raises(ToolError, match=rf"says: {version}"):
            workshop.installer(tool).install([tool])


def test_downloads_where_the_internet_is_open(workshop: Workshop, site: Site) -> None:
    tool = workshop.tool(release=site.publish(b"#!/bin/sh\necho released\n"))
    workshop.installer(tool, probe=site.url).install([tool])
    assert run(workshop.root / "cache" / "bin" / "hello") == "released"
    assert workshop.builds == 0
    assert "downloaded" in workshop.said


def test_what_a_release_has_beside_the_tool_is_linked_too(workshop: Workshop, site: Site) -> None:
    release = site.publish(b"", beside=b"#!/bin/sh\necho language host\n")
    tool = workshop.tool(release=release)
    workshop.installer(tool, probe=site.url).install([tool])
    assert run(workshop.root / "cache" / "bin" / "beside") == "language host"


def test_a_release_may_be_zipped(workshop: Workshop, site: Site) -> None:
    release = site.publish_zip(b"#!/bin/sh\necho zipped\n")
    tool = workshop.tool(release=release)
    workshop.installer(tool, probe=site.url).install([tool])
    assert run(workshop.root / "cache" / "bin" / "hello") == "zipped"
    absent = workshop.tool(version="1.1", release=release.model_copy(update={"members": ("bin/hallo",)}))
    with pytest.raises(ToolError, match=r"hello\.zip is not packed as expected, it has no bin/hallo"):
        workshop.installer(absent, probe=site.url).install([absent])


def test_archive_without_the_file(workshop: Workshop, site: Site) -> None:
    release = site.publish(b"").model_copy(update={"members": ("hello-{version}/hallo",)})
    tool = workshop.tool(release=release)
    with pytest.raises(ToolError, match=r"hello\.tar\.gz is not packed as expected, it has no hello-1\.0/hallo"):
        workshop.installer(tool, probe=site.url).install([tool])


def test_bare_executable_with_a_bare_checksum(workshop: Workshop, site: Site) -> None:
    release = site.publish(b"")
    script = b"#!/bin/sh\necho bare\n"
    (site.folder / "hello").write_bytes(script)
    (site.folder / "hello.sha256").write_text(hashlib.sha256(script).hexdigest())
    release = release.model_copy(
        update={"url": f"{site.url}/{{name}}", "checksums": f"{site.url}/{{name}}.sha256", "members": ()}
    )
    tool = workshop.tool(release=release)
    workshop.installer(tool, probe=site.url).install([tool])
    assert run(workshop.root / "cache" / "bin" / "hello") == "bare"


def test_wrong_checksum_is_refused(workshop: Workshop, site: Site) -> None:
    tool = workshop.tool(release=site.publish(b"tampered", checksum="f" * 64))
    with pytest.raises(ToolError, match=r"(?s)is not what upstream published.*should be f{64}.*SHA256SUMS"):
        workshop.installer(tool, probe=site.url).install([tool])
    assert not (workshop.root / "cache" / "bin").exists()
    assert workshop.builds == 0, "a changed download is an alarm, not a reason to go another way"


def test_builds_when_the_download_fails(workshop: Workshop, site: Site) -> None:
    release = site.publish(b"").model_copy(update={"checksums": f"{NOWHERE}SHA256SUMS"})
    tool = workshop.tool(release=release)
    workshop.installer(tool, probe=site.url).install([tool])
    assert run(workshop.root / "cache" / "bin" / "hello") == "made"
    assert "building it instead" in workshop.said


def test_optional_tool_of_the_system_is_left_out(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(workshop.root))
    box = workshop.tool("box", build=None, system={"debian_package": "boxes", "optional": "pods are faked"})
    workshop.installer(box).install([box])
    assert "left out, pods are faked: box is not installed" in workshop.said


def test_two_runs_side_by_side_build_once(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_GO_THEN", "sleep 1")
    tool = workshop.tool()
    runs = [threading.Thread(target=workshop.installer(tool).install, args=([tool],)) for _ in range(2)]
    for each in runs:
        each.start()
    for each in runs:
        each.join()
    assert workshop.builds == 1
    waited = workshop.said.partition("Another run is making the tools")[2]
    assert waited.count("[1/1] hello 1.0: building (0:0") == 2, "the other run's step, and its own words for it"


def test_a_run_waits_for_no_more_than_it_needs(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    held = workshop.root / "held"
    monkeypatch.setenv("FAKE_GO_THEN", f"while [ -e {held} ]; do sleep 0.1; done; touch {held}")
    first, second = workshop.tool("first"), workshop.tool("second")
    both = workshop.installer(first, second)
    other = threading.Thread(target=both.install, args=([first, second],))
    other.start()
    eventually(lambda: workshop.builds == 2)
    workshop.installer(first, second).install([first])
    made = run(workshop.root / "cache" / "bin" / "first"), other.is_alive()
    held.unlink()
    other.join()
    assert made == ("made", True)


def test_temporary_files_of_builds_are_the_stores_and_go_with_it(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = workshop.root / "told"
    monkeypatch.setenv("FAKE_GO_THEN", f'echo "$TMPDIR" >{told}; touch "$TMPDIR/left"')
    tool = workshop.tool()
    workshop.installer(tool).install([tool])
    used = Path(told.read_text().strip())
    assert used.is_relative_to(workshop.root / "cache")
    assert not used.exists()
    assert os.environ.get("TMPDIR") != str(used)


INTERRUPTED = """
import sys
from pathlib import Path
from simulator.tools import __main__ as cli, catalogue
from tests.support.waiting import eventually
from tests.units.simulator.tools.conftest import Workshop, NOWHERE
root = Path(sys.argv[1])
tool = Workshop.tool(None)
sizes = {"base": 0, "per_build": 0, "per_download": 0}
fake = catalogue.Catalogue(probe=NOWHERE, go="1.26", disk_gib=sizes, tools=(tool,), modules=root / "modules")
catalogue.load = lambda: fake
sys.exit(cli.main([]))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_build_leaves_nothing_half_made(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    cache = workshop.root / "cache"
    environment = {**os.environ, "AI_ON_AKS_CACHE": str(cache), "FAKE_GO_THEN": "sleep 20"}
    command = [sys.executable, "-c", INTERRUPTED, str(workshop.root)]
    heeding = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # tests in the background ignore it
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=heeding) as process:
        deadline = time.monotonic() + 30
        while not workshop.builds and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(how)
        _, said = process.communicate(timeout=30)
    assert process.returncode == (-signal.SIGKILL if how == signal.SIGKILL else interrupts.INTERRUPTED)
    assert "Traceback" not in said
    assert not list(cache.glob("bin*"))
    if how != signal.SIGKILL:
        assert said.endswith("Interrupted. Finished tools are kept; the same command goes on from here.\n")
        assert not (cache / "staging").exists()
    monkeypatch.delenv("FAKE_GO_THEN", raising=False)
    tool = workshop.tool()
    workshop.installer(tool).install([tool])
    assert run(cache / "bin" / "hello") == "made"
