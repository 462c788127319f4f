"""The table of bad input, from the files of `bad_input/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

Case = dict[str, Any]


def read() -> dict[str, Case]:
    """Returns all cases by name.

    `stack` holds keys of a stack file, `says` what is wrong with it, each with its fix; `by_hand`: a fix is in words;
    `rounds`: how often commands are applied, if more than once. `name` is the stack's, dev unless set; `platforms`
    holds other stacks' keys by name, `others` outputs of stacks that are no platforms.
    """
    files = sorted(Path(__file__).with_name("bad_input").glob("*.yaml"))
    return {name: case for file in files for name, case in yaml.safe_load(file.read_text("utf-8")).items()}
