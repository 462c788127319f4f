"""`python -m simulator.tools.lint`: runs every linter on git's files, even if one fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from simulator.host import paths
from simulator.tools import __main__ as tools

_SHELL = re.compile(rb"#!\S*[/ ](sh|bash)\b")
_GO = Path("tests/contract/azure_sdks/go")
_GOFMT = 'test -z "$(gofmt -d "$@" | tee /dev/stderr)"'
"""A command that fails if gofmt prints a difference. gofmt itself does not fail."""


def main() -> int:
    if tools.main(["--for", "check"]) != 0:
        return 1
    files = _files()
    scripts = [file for file in files if _is_shell(file)]
    images = [file for file in files if file.name == "Dockerfile"]
    linters = {
        "ruff format": ["ruff", "format", "--check", "--diff", "--quiet", "."],
        "ruff check": ["ruff", "check", "--quiet", "."],
        "mypy": ["mypy"],
        "shellcheck": ["shellcheck", "--external-sources", *map(str, scripts)] if scripts else [],
        "hadolint": ["hadolint", *map(str, images)] if images else [],
        "actionlint": ["actionlint"],
        "gofmt": ["bash", "-c", _GOFMT, "gofmt", str(_GO)],
        "go vet": ["go", "-C", str(_GO), "vet", "./..."],
        "yamllint": ["yamllint", "--strict", "."],
    }
    failed = [name for name, command in linters.items() if command and not _passes(name, command)]
    print(f"failed: {', '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


def _files() -> list[Path]:
    """Returns all files except those that git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in listed.split("\0") if name and (paths.ROOT / name).is_file()]


def _is_shell(file: Path) -> bool:
    if file.suffix:
        return file.suffix == ".sh"
    with (paths.ROOT / file).open("rb") as content:
        return bool(_SHELL.match(content.read(64)))


def _passes(name: str, command: list[str]) -> bool:
    print(f"== {name}", flush=True)
    first = [str(Path(sys.executable).parent), str(paths.tools_bin())]
    environment = {**os.environ, "PATH": os.pathsep.join([*first, os.environ.get("PATH", "")])}
    return subprocess.run(command, cwd=paths.ROOT, env=environment, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
