"""The table of bad input, from the files of `bad_input/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

Case = dict[str, Any]


def read() -> dict[str, Case]:
    """All cases by name: `stack` holds keys of a stack file, `says` what is said of it, `by_hand` a fix in words.

    `name` is the stack's, dev unless set; `platforms` holds other stacks' keys by name, `others` outputs of such as are
    none.
    """
    files = sorted(Path(__file__).with_name("bad_input").glob("*.yaml"))
    return {name: case for file in files for name, case in yaml.safe_load(file.read_text("utf-8")).items()}
