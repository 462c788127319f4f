"""Parses commands with the Azure CLI's parser and packages.

Input: one JSON list of words per line, `az` first. Output: the words, and the parser's error or "".
"""

from __future__ import annotations

import contextlib
import io
import json
import sys

from azure.cli.core import get_default_cli
from azure.cli.core.file_util import create_invoker_and_load_cmds_and_args


def main() -> None:
    cli = get_default_cli()
    create_invoker_and_load_cmds_and_args(cli)
    parser = cli.invocation.parser
    for line in sys.stdin:
        words, output = json.loads(line), io.StringIO()
        try:
            with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
                parser.parse_args(words[1:])
            objection = ""
        except SystemExit as end:
            objection = (output.getvalue().strip() or str(end)) if end.code else ""
        print(json.dumps([words, objection]), flush=True)


if __name__ == "__main__":
    main()
