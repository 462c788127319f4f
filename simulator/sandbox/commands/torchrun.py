"""`torchrun`: one agent on each node. The first node simulates the training of all ranks."""

from __future__ import annotations

import importlib
import sys
from argparse import Namespace
from pathlib import Path

from simulator.sandbox.library import recipe, view
from simulator.sandbox.library.recipe import Failed, Recipe, Values
from simulator.sandbox.library.torch_team import DONE, FAILED, STARTED, Team


def main(arguments: list[str]) -> int:
    """Runs this node's agent. Returns 0, 1 if the training failed, or 2 for a wrong command line.

    A program's module has two functions, which may raise Failed. `prepare(arguments, team)` reads the command line and
    files on each node. `train(prepared, team)` simulates all ranks on the first node.
    """
    texts = view.program("torchrun")
    try:
        options = _options(arguments, texts)
        name = _module(options, texts)
    except SystemExit as error:
        return int(error.code or 0)
    program = importlib.import_module(f"simulator.sandbox.commands.{name}")
    team = Team(options, texts, view.program(name))
    try:
        first = team.meet()
        team.catch_sigterm()
        prepared = program.prepare(list(options.program[1:]), team)
        team.publish(STARTED)
        if options.node_rank:
            team.follow(first)
        else:
            program.train(prepared, team)
    except Failed as error:
        team.publish(FAILED, code=error.code)
        if str(error):
            print(error, file=sys.stderr)
        rank = options.node_rank * options.nproc_per_node
        print(texts["report"].format(program=options.program[0], rank=rank, code=error.code), file=sys.stderr)
        return 1
    team.publish(DONE)
    return 0


def _options(arguments: list[str], texts: Recipe) -> Namespace:
    parser = recipe.parser(texts["options"])
    options = parser.parse_args(arguments)
    least, _, most = options.nnodes.partition(":")
    options.host, _, port = (options.rdzv_endpoint or f"{options.master_addr}:{options.master_port}").partition(":")
    settings = dict(entry.partition("=")[::2] for entry in options.rdzv_conf.split(",") if entry)
    timeout = settings.get("timeout", texts["timeout_s"])
    numbers = {"nodes": least, "port": port or options.master_port, "timeout": timeout}
    for name, text in numbers.items():
        if not str(text).isdigit():
            parser.error(f"invalid int value: '{text}'")
        setattr(options, name, int(text))
    if text := Values(texts, {**vars(options), "fixed": (most or least) == least}).error():
        parser.error(text)
    return options


def _module(options: Namespace, texts: Recipe) -> str:
    program = options.program[0]
    path = Path(f"{program.replace('.', '/')}.py" if options.module else program).resolve()
    module = view.load_self()["commands"].get(str(path))
    if module is None:
        recipe.parser(texts["options"]).error(f"simulator: {program} is missing, or not simulated")
    return str(module)
