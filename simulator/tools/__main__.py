"""Installs the missing tools of a group of commands or of a stack."""

from __future__ import annotations

import argparse
import sys

from simulator.host import interrupts, paths
from simulator.tools import catalogue as catalogues
from simulator.tools.catalogue import Catalogue, Tool
from simulator.tools.errors import ToolError
from simulator.tools.install import Installer
from simulator.tools.of_stack import of_stack
from simulator.tools.store import Store


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 if the tools are installed, else 1 with one message on standard error."""
    message = "Interrupted. Finished tools are kept; to continue, run the same command."
    return interrupts.guarded(lambda: _make(arguments), message)


def _make(arguments: list[str] | None) -> int:
    catalogue = catalogues.load()
    options = _parse(catalogue, arguments)
    try:
        tools = _chosen(catalogue, options)
        installer = Installer(catalogue, Store(paths.cache(), paths.tools_bin().name))
        if options.check:
            return _check(installer, tools)
        installer.install(tools)
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parse(catalogue: Catalogue, arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simulator.tools", description=__doc__)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--for", dest="groups", nargs="+", choices=sorted(catalogue.groups))
    group.add_argument("--stack", help="the simulator's tools, and the tools of Pulumi.<STACK>.yaml")
    group.add_argument("--all", action="store_true", help="all tools, including tools of tests and linters")
    group.add_argument("--only", metavar="TOOL,TOOL", help=f"only these: {', '.join(catalogue.by_name)}")
    parser.add_argument("--check", action="store_true", help="install nothing; exit with 1 and list missing tools")
    return parser.parse_args(arguments)


def _chosen(catalogue: Catalogue, options: argparse.Namespace) -> list[Tool]:
    if options.all:
        return list(catalogue.tools)
    if options.stack:
        return of_stack(catalogue, options.stack)
    if options.only:
        return catalogue.named(options.only.split(","))
    return catalogue.needed_for(*options.groups or ["simulator"])


def _check(installer: Installer, tools: list[Tool]) -> int:
    if missing := installer.missing(tools):
        names = ",".join(tool.name for tool in missing)
        raise ToolError(f"missing tools: {names}. To install them: python -m simulator.tools --only {names}")
    print(f"all {len(tools)} tools are in {paths.tools_bin()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
