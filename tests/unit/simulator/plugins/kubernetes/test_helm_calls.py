from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from simulator.plugins.kubernetes.release import options, tether
from simulator.plugins.kubernetes.release.helm import _reason, _run
from tests.support.waiting import eventually


def test_chart_arguments() -> None:
    def arguments(**given: Any) -> list[str]:
        return options.chart_arguments(options.DEFAULTS | given)

    assert arguments(chart="oci://host/path/name", version="1.0") == ["oci://host/path/name", "--version", "1.0"]
    repository = {"repo": "https://charts.test", "username": "u", "password": "p"}
    assert arguments(chart="name", repositoryOpts=repository) == [
        *("name", "--repo", "https://charts.test"),
        *("--username", "u", "--password", "p"),
    ]
    assert arguments(chart="name", repositoryOpts={"repo": "added"}) == ["added/name"]
    assert arguments(chart="name", devel=True) == ["name", "--version", ">0.0.0-0"]


def test_option_flags() -> None:
    given = options.DEFAULTS | {"name": "r", "namespace": "n", "chart": "c", "timeout": 5}
    install = options.install_arguments(given | {"atomic": True, "waitForJobs": True, "disableWebhooks": True})
    assert install[:3] == ["install", "r", "c"]
    assert {"--atomic", "--wait", "--wait-for-jobs", "--no-hooks"} <= set(install)
    assert install[install.index("--timeout") + 1] == "5s"
    assert "--wait" not in options.install_arguments(given | {"skipAwait": True})
    upgrade = options.upgrade_arguments(given | {"maxHistory": 3, "cleanupOnFail": True})
    assert upgrade[upgrade.index("--history-max") + 1] == "3"
    assert "--cleanup-on-fail" in upgrade
    assert "--wait" not in options.uninstall_arguments(given | {"skipAwait": True}, may_be_gone=False)


def test_keeps_the_error_of_helm() -> None:
    stderr = "level=WARN msg=x\nError: INSTALLATION FAILED: values don't meet the schema:\ndemo:\n- at '/n': wrong\n"
    assert _reason(stderr) == "values don't meet the schema:\ndemo:\n- at '/n': wrong"


def test_passes_all_values_to_a_slow_helm() -> None:
    """The values exceed a pipe buffer, and Helm reads them after the first poll, as on a busy machine."""
    late = ["/bin/sh", "-c", "sleep 0.5; wc -c"]
    assert int(_run(threading.Event(), late, "x" * 200_000, {"PATH": os.environ["PATH"]})) == 200_000


def test_helm_ends_with_the_plugin() -> None:
    start = f"""
import os, subprocess, sys, time
command = [sys.executable, {tether.__file__!r}, str(os.getpid()), sys.executable, "-c", "import time; time.sleep(60)"]
print(subprocess.Popen(command).pid, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = Path("/proc", parent.stdout.readline().strip())
        try:
            eventually(lambda: tether.__file__ not in (child / "cmdline").read_text(), "it replaces the tether")
        finally:
            parent.kill()
    eventually(lambda: has_ended(child), "it ends with its parent", seconds=30)


def has_ended(process: Path) -> bool:
    try:
        return (process / "stat").read_text().split()[2] == "Z"
    except OSError:
        return True
