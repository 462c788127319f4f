"""Parses and runs the commands."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, NoReturn

from workloads.resim import metaseq
from workloads.resim.batch import MOST_SCENARIOS, Refused
from workloads.resim.cli.session import Session, session
from workloads.resim.cli.status import cancel, summary, wait
from workloads.resim.cli.submit import Submitted, retry, scenarios, submit
from workloads.resim.manifests import TEST_IO
from workloads.resim.options import MOST_HOURS, NAME

_Command = Callable[[Session, argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0 on success. With --wait, that means that no scenario of the batch failed."""
    options = _parser().parse_args(argv)
    try:
        if options.does is _submit:  # errors in a file need no stack
            options.names = scenarios(options.scenarios, options.njobs)
        with session(options.stack) as found:
            does: _Command = options.does
            return does(found, options)
    except Refused as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; what was submitted goes on", file=sys.stderr)
        return 130


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Reports the error in the format of all commands."""
        allowed = " ".join(self.format_usage().split()[1:])
        self.exit(2, f"error: {Refused(message, allowed, f'{self.prog} --help')}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m workloads.resim", description="Batches of scenarios.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    one = _command(commands, "submit", _submit, "runs a batch, or what of it is not done yet")
    what = one.add_mutually_exclusive_group(required=True)
    what.add_argument("--scenarios", metavar="FILE", help="with the name of a scenario a line")
    what.add_argument("--njobs", type=int, metavar="N", help="so many scenarios, numbered")
    one.add_argument("--name", default="", help="of the batch; by default made of its scenarios")
    _running(one)

    one = _command(commands, "status", _status, "shows the summary of a batch")
    one.add_argument("batch", nargs="?", default=NAME, help=f"by default {NAME}, the stack's own")
    one.add_argument("--wait", action="store_true", help="until it has ended")

    one = _command(commands, "retry", _retry, "runs what is not done of a batch that has ended")
    one.add_argument("batch")
    _running(one)

    one = _command(commands, "cancel", _cancel, "ends a batch; what is done stays, and retry goes on from there")
    one.add_argument("batch")
    return parser


def _command(commands: Any, name: str, does: _Command, says: str) -> argparse.ArgumentParser:
    one: argparse.ArgumentParser = commands.add_parser(name, help=says, description=says)
    one.set_defaults(does=does)
    one.add_argument("-s", "--stack", default="", help=f"with the workload {NAME}; by default the one that is selected")
    one.add_argument("-o", "--output", choices=("text", "json"), default="text")
    return one


def _running(one: argparse.ArgumentParser) -> None:
    named = f"what runs a scenario, as {TEST_IO} or, where the stack has it, {metaseq.TEMPLATE}"
    one.add_argument("--template", default="", help=f"{named}; by default as before, or {TEST_IO}")
    one.add_argument("--parallelism", type=_to(MOST_SCENARIOS), help="scenarios at once; by default as the stack says")
    one.add_argument("--hours", type=_to(MOST_HOURS), help="how long it may take; by default as the stack says")
    one.add_argument("--wait", action="store_true", help="until it has ended, and sum it up")


def _to(most: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        if not text.isdecimal() or not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to {most}")
        return int(text)

    return whole


def _submit(found: Session, options: argparse.Namespace) -> int:
    changes = {"parallelism": options.parallelism, "hours": options.hours}
    begun = submit(found, options.names, name=options.name, template=options.template, **changes)
    return _begun(found, options, begun)


def _retry(found: Session, options: argparse.Namespace) -> int:
    changes = {"parallelism": options.parallelism, "hours": options.hours}
    begun = retry(found, options.batch, template=options.template, **changes)
    return _begun(found, options, begun)


def _begun(found: Session, options: argparse.Namespace, begun: Submitted) -> int:
    if not options.wait:
        _show(options, asdict(begun), begun.lines())
        return 0
    print("\n".join(begun.lines()), file=sys.stderr)
    return _ended(found, options, begun.batch)


def _status(found: Session, options: argparse.Namespace) -> int:
    if options.wait:
        return _ended(found, options, options.batch)
    told = summary(found, options.batch)
    _show(options, told.document(), told.lines())
    return 0


def _ended(found: Session, options: argparse.Namespace, batch: str) -> int:
    run = wait(found, batch)
    told = summary(found, batch)
    _show(options, told.document(), told.lines())
    return 1 if run.failed or run.reason else 0


def _cancel(found: Session, options: argparse.Namespace) -> int:
    def says(jobs: list[str]) -> None:
        again = "pulumi up --refresh" if options.batch == NAME else f"python -m workloads.resim retry {options.batch}"
        lines = [*(f"job.batch/{name} deleted" for name in jobs), f"what is done stays; to go on: {again}"]
        _show(options, {"batch": options.batch, "jobs": jobs}, lines)

    cancel(found, options.batch, says)
    return 0


def _show(options: argparse.Namespace, document: object, lines: Iterable[str]) -> None:
    print(json.dumps(document, indent=2) if options.output == "json" else "\n".join(lines))
