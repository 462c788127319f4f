"""`nhc` with the tests of aznhc, on the simulated node.

Options, log lines and the handling of unknown checks are those of mej/nhc 1.4.3 with `-a`. Other options are errors.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from simulator.sandbox.library import nhc_gpu, nhc_node, view
from simulator.sandbox.library.nhc_report import Failed, Warned

SETTINGS = ("CONFFILE", "LOGFILE", "TIMEOUT", "DETACHED_MODE", "MARK_OFFLINE")
OPTIONS = ("-a", "-v")
CHECKS: dict[str, Callable[[view.View, Sequence[str]], str | None]] = {**nhc_node.CHECKS, **nhc_gpu.CHECKS}
"""Checks by name. A check returns success lines, or None if the real check prints none, or raises Failed or Warned."""
_LINE = re.compile(r"\s*(\S+)\s*\|\|\s*(\S.*?)\s*")


def main(arguments: list[str]) -> int:
    """Returns the number of failed checks, or 0 without a configuration, like the real nhc."""
    options = [word for word in arguments if word.startswith("-")]
    settings = dict(word.partition("=")[::2] for word in arguments if not word.startswith("-"))
    if unknown := sorted({*options} - {*OPTIONS} | {*settings} - {*SETTINGS}):
        print(f"simulator: nhc {' '.join(unknown)} is not simulated", file=sys.stderr)
        return 9
    if "-a" not in options:
        print("simulator: nhc is simulated only with -a, which runs all checks", file=sys.stderr)
        return 9
    file = Path(settings.get("CONFFILE", "/etc/nhc/nhc.conf"))
    if not file.is_file():
        return 0
    known = view.load()
    with Path(settings.get("LOGFILE", "/var/log/nhc.log")).open("a") as stream:
        run = Run(known, stream, verbose="-v" in options)
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if line.strip() and not line.lstrip().startswith("#"):
                run.line(line, number)
        return run.ended()


@dataclass
class Run:
    """One run over the configuration."""

    known: view.View
    log: TextIO
    verbose: bool
    failures: list[str] = field(default_factory=list)

    def line(self, text: str, number: int) -> None:
        """Runs one line, `* || <check>`."""
        parsed = _LINE.fullmatch(text)
        if parsed is None:
            self._write(f"nhc: line {number}: syntax error near {text.strip()!r}")
            return
        if parsed[1] != "*":
            self._fail(f"simulator: host masks other than * are not simulated: {parsed[1]}")
            return
        if self.verbose:
            self._write(f'Running check:  "{parsed[2]}"')
        name, *arguments = parsed[2].split()
        check = CHECKS.get(name)
        if check is None:
            self._write(f"/usr/sbin/nhc: line {number}: {name}: command not found")
            return
        try:
            passed = check(self.known, arguments)
        except Failed as failed:
            self._fail(str(failed))
        except Warned as warned:
            self._write(str(warned))
        else:
            for text in (passed or "").splitlines():
                self._log(f"SUCCESS:  nhc:  Health check passed:  {text}")

    def ended(self) -> int:
        if self.failures:
            self._log(f"ERROR:  nhc:  {len(self.failures)} health checks failed.")
        elif self.verbose:
            self._write("Node Health Check completed successfully (0s).")
        return len(self.failures)

    def _fail(self, text: str) -> None:
        self.failures.append(text)
        self._log(f"ERROR:  nhc:  Health check failed:  {text}")

    def _log(self, text: str) -> None:
        self._write(text)
        print(text, flush=True)

    def _write(self, text: str) -> None:
        self.log.write(text + "\n")
        self.log.flush()
