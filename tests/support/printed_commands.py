"""Finds printed and documented commands, in Markdown, Python strings and data files.

A command is in backticks, or begins a line of code or a string.
"""

from __future__ import annotations

import ast
import functools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from simulator.host.paths import ROOT

FOLDERS = ("components", "config", "demos", "diagnosis", "docker", "k8s", "operators", "simulator", "workloads")
TOOLS = ("az", "helm", "kubectl", "kubelogin", "pulumi")
FILLED_IN = "1"
"""The replacement for placeholders, valid as text and number."""
_PLACEHOLDER = re.compile(r"<[^<>\n]*>|\{[^{}\n]*\}|\$\([^()]*\)|\$\{?\w+\}?|%[sd]")
_START = re.compile(rf"(?:{'|'.join(TOOLS)}) [a-z]")
_END = re.compile(r"\s+#\s.*|\s*(?:&&|\|\||[|;])\s*")
_FENCE = re.compile(r"^ *```\w*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^ {4,}(?:\$ )?(\S.*(?:\\\n.*)*)$", re.MULTILINE)
_INLINE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Command:
    where: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.where}: {shlex.join(self.words)}"


@functools.cache
def commands() -> list[Command]:
    """Returns each distinct command, with the first file that prints it."""
    found: dict[tuple[str, ...], Command] = {}
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *_sources()]):
        for text in _texts(path):
            for words in _split(text):
                found.setdefault(words, Command(str(path.relative_to(ROOT)), words))
    return list(found.values())


def _sources() -> Iterator[Path]:
    for folder in FOLDERS:
        for kind in ("*.py", "*.yaml"):
            yield from (path for path in (ROOT / folder).rglob(kind) if "charts" not in path.parts)


def _texts(path: Path) -> Iterator[str]:
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        yield from (line for block in _FENCE.findall(text) for line in block.replace("\\\n", " ").splitlines())
        yield from (line.replace("\\\n", " ") for line in _INDENTED.findall(_FENCE.sub("", text)))
        yield from _INLINE.findall(_FENCE.sub("", text))
        return
    strings = _python_strings(text) if path.suffix == ".py" else _yaml_strings(text)
    for string in strings:
        yield from string.splitlines()
        yield from _INLINE.findall(string)


def _python_strings(text: str) -> Iterator[str]:
    """Replaces expressions of f-strings by placeholders."""
    tree = ast.parse(text)
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)} - {
        id(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "<>" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value


def _yaml_strings(text: str) -> Iterator[str]:
    def strings(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            for each in value.values() if isinstance(value, dict) else value:
                yield from strings(each)

    for document in yaml.load_all(text, yaml.CSafeLoader):
        yield from strings(document)


def _split(text: str) -> Iterator[tuple[str, ...]]:
    plain = _PLACEHOLDER.sub(FILLED_IN, text.strip())
    for part in _END.split(plain):
        if _START.match(part):
            try:
                yield tuple(shlex.split(part))
            except ValueError:  # an open quote: prose
                continue
