"""Parses and runs the commands."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, NoReturn

from workloads.resim import metaseq
from workloads.resim.batch import BATCH, MOST_SCENARIOS, Refused
from workloads.resim.cli.session import Session, session
from workloads.resim.cli.status import cancel, summary, wait
from workloads.resim.cli.submit import Submitted, retry, scenarios, submit
from workloads.resim.manifests import TEST_IO
from workloads.resim.options import MOST_HOURS, NAME

_Command = Callable[[Session, argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code. 0 is success; with --wait, it also means that no scenario failed."""
    options = _parser().parse_args(argv)
    try:
        if options.handler is _submit:  # errors in a file need no stack
            options.names = scenarios(options.scenarios, options.njobs)
        with session(options.stack) as found:
            handler: _Command = options.handler
            return handler(found, options)
    except Refused as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; submitted jobs continue", file=sys.stderr)
        return 130


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        allowed = " ".join(self.format_usage().split()[1:])
        self.exit(2, f"error: {Refused(message, allowed, f'{self.prog} --help')}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m workloads.resim", description="Runs batches of scenarios and reports their state.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = _command(commands, "submit", _submit, "run a batch, or its unfinished scenarios")
    scenarios = command.add_mutually_exclusive_group(required=True)
    scenarios.add_argument("--scenarios", metavar="FILE", help="a text file with one scenario per line")
    scenarios.add_argument("--njobs", type=int, metavar="N", help="number of scenarios, with generated names")
    command.add_argument("--name", default="", help="name of the batch; by default derived from its scenarios")
    _add_run_options(command)

    command = _command(commands, "status", _status, "show the summary of a batch")
    command.add_argument("batch", type=_batch, nargs="?", default=NAME, help=f"by default {NAME}, the stack's own")
    command.add_argument("--wait", action="store_true", help="wait until it has ended")

    command = _command(commands, "retry", _retry, "run the unfinished scenarios of a batch that has ended")
    command.add_argument("batch", type=_batch)
    _add_run_options(command)

    command = _command(commands, "cancel", _cancel, "stop a batch and keep its finished scenarios; retry runs the rest")
    command.add_argument("batch", type=_batch)
    return parser


def _command(commands: Any, name: str, handler: _Command, about: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about)
    command.set_defaults(handler=handler)
    command.add_argument(
        "-s", "--stack", default="", help=f"a stack with workload {NAME}; by default the selected stack"
    )
    command.add_argument("-o", "--output", choices=("text", "json"), default="text", help="output format")
    return command


def _add_run_options(command: argparse.ArgumentParser) -> None:
    templates = f"program of each scenario: {TEST_IO}, or {metaseq.TEMPLATE} if the stack has it"
    command.add_argument("--template", default="", help=f"{templates}; by default the batch's, or {TEST_IO}")
    parallel = "number of parallel scenarios; by default the stack's setting"
    command.add_argument("--parallelism", type=_to(MOST_SCENARIOS), help=parallel)
    command.add_argument("--hours", type=_to(MOST_HOURS), help="time limit; by default the stack's setting")
    command.add_argument("--wait", action="store_true", help="wait until it has ended, and show the summary")


def _batch(name: str) -> str:
    if not BATCH.fullmatch(name):
        raise argparse.ArgumentTypeError(f"{name!r} is not a valid name of a batch")
    return name


def _to(most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {most}")
        return int(text)

    return number


def _submit(found: Session, options: argparse.Namespace) -> int:
    changes = {"parallelism": options.parallelism, "hours": options.hours}
    submitted = submit(found, options.names, name=options.name, template=options.template, **changes)
    return _report_run(found, options, submitted)


def _retry(found: Session, options: argparse.Namespace) -> int:
    changes = {"parallelism": options.parallelism, "hours": options.hours}
    submitted = retry(found, options.batch, template=options.template, **changes)
    return _report_run(found, options, submitted)


def _report_run(found: Session, options: argparse.Namespace, submitted: Submitted) -> int:
    if not options.wait:
        _show(options, asdict(submitted), submitted.lines())
        return 0
    print("\n".join(submitted.lines()), file=sys.stderr)
    return _report_end(found, options, submitted.batch)


def _status(found: Session, options: argparse.Namespace) -> int:
    if options.wait:
        return _report_end(found, options, options.batch)
    result = summary(found, options.batch)
    _show(options, result.document(), result.lines())
    return 0


def _report_end(found: Session, options: argparse.Namespace, batch: str) -> int:
    run = wait(found, batch)
    result = summary(found, batch)
    _show(options, result.document(), result.lines())
    return 1 if run.failed or run.reason else 0


def _cancel(found: Session, options: argparse.Namespace) -> int:
    jobs = cancel(found, options.batch)
    again = "pulumi up --refresh" if options.batch == NAME else f"python -m workloads.resim retry {options.batch}"
    lines = [*(f"job.batch/{name} deleted" for name in jobs), f"finished scenarios are kept; to continue: {again}"]
    _show(options, {"batch": options.batch, "jobs": jobs}, lines)
    return 0


def _show(options: argparse.Namespace, document: object, lines: Iterable[str]) -> None:
    print(json.dumps(document, indent=2) if options.output == "json" else "\n".join(lines))
