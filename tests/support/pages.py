from __future__ import annotations

import re
from pathlib import Path

from simulator.host.paths import ROOT

FENCED = re.compile(r"^```\w*\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
"""A picture or a file to copy."""
NAMED = re.compile(r"(?:#!.*\n)?# ([\w./-]+)\n")
"""The start of a file to copy: an optional shebang, then its name in a comment."""
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))


def code(page: Path) -> list[str]:
    """Leaves out fenced blocks."""
    text = FENCED.sub("", page.read_text("utf-8"))
    blocks = [line.strip() for line in text.splitlines() if re.match(r" {4,}\S", line)]
    joined = re.sub(r"`[^`]*`", lambda span: span[0].replace("\n", " "), text)
    return [*re.findall(r"`([^`]+)`", joined), *blocks]


def files(page: Path) -> dict[str, str]:
    blocks = FENCED.findall(page.read_text("utf-8"))
    return {named[1]: block for block in blocks if (named := NAMED.match(block))}


def links(page: Path) -> list[str]:
    found = re.findall(r"\]\(([^)#]+)", page.read_text("utf-8"))
    return [target for target in found if "://" not in target]


def rows(page: Path, first: str) -> list[list[str]]:
    """Returns the rows of all tables whose first column has this heading."""
    tables = re.findall(rf"^\| {re.escape(first)} \|.*\n\|-.*\n((?:\|.*\n)+)", page.read_text("utf-8"), re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for text in tables for line in text.splitlines()]
