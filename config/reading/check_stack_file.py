"""Checks the YAML of a stack file before Pulumi reads it: `python -m config.reading.check_stack_file <file>`.

Exits with 0 if Pulumi can read the file, else with 1 and one message.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

_OPEN = "close the open bracket or quotation mark"
HINTS = {
    "'\\t' that cannot start": "indent with spaces, not tabs",
    "cannot start any token": "quote text that begins with a special character",
    "mapping values are not allowed": "quote text with a colon, and check the indentation of this line",
    "could not find expected ':'": "each key ends in a colon and a space; check this line and the one above",
    "<block end>, but found ']'": "remove the bracket: it closes nothing",
    "<block end>, but found '}'": "remove the bracket: it closes nothing",
    "expected <block end>": "indent this line like the lines around it",
    "expected ',' or": _OPEN,
    "found '<stream end>'": _OPEN,
    "found unexpected end of stream": _OPEN,
    "found duplicate key": "keep one of the two lines",
}
USUAL_HINT = "compare this line with the lines around it"


class _NoDuplicates(yaml.SafeLoader):
    """A loader that rejects duplicate keys, as Pulumi's parser does and PyYAML does not."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"found duplicate key {key!r}", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def fault(file: Path) -> str | None:
    """Returns the complete error message for a file, or None if Pulumi can read it."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return f"{file} does not exist\n  fix: pulumi stack init {file.name.split('.')[1]}"
    except UnicodeDecodeError as error:
        encoding = json.detect_encoding(file.read_bytes()[:8])
        name = "CP1252" if encoding.startswith("utf-8") else encoding.upper()
        fix = f"iconv -f {name} -t UTF-8 {file} > {file}.utf8 && mv {file}.utf8 {file}"
        return f"{file}: byte {error.start} is not UTF-8 text, probably {name}\n  fix: {fix}"
    try:
        content = yaml.load(text, _NoDuplicates)  # noqa: S506  a SafeLoader
    except yaml.MarkedYAMLError as error:
        return _at(file, text, error)
    except yaml.reader.ReaderError as error:
        return f"{file}: character {error.position} is not allowed in YAML\n  fix: remove it"
    config = content.get("config") or {} if isinstance(content, dict) else content
    if config is None or isinstance(config, dict):
        return None
    return f"{file} contains no keys\n  fix: begin with a line `config:`, then one key per line, indented by two spaces"


def _at(file: Path, text: str, error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or error.context or "not valid YAML"
    hint = next((hint for part, hint in HINTS.items() if part in problem), USUAL_HINT)
    if hint == _OPEN and mark and error.context_mark and error.context_mark.line < mark.line:
        hint += f" of line {error.context_mark.line + 1}"
    if mark is None:
        return f"{file}: {problem}\n  fix: {hint}"
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    return "\n".join(
        [
            f"{file}, line {mark.line + 1}, column {mark.column + 1}: {problem}",
            f"  {line}",
            f"  {' ' * mark.column}^",
            f"  fix: {hint}; `git diff {file}` shows the changes",
        ]
    )


def main(arguments: list[str]) -> int:
    faults = [found for name in arguments if (found := fault(Path(name)))]
    for found in faults:
        sys.stderr.write(f"{found}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
