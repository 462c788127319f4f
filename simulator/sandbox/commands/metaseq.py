"""`metaseq-train`: reads each rank's options, and simulates the training of all ranks."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from simulator.sandbox.library import ranks, recipe, training, view
from simulator.sandbox.library.nccl_log import Log
from simulator.sandbox.library.programs import Call
from simulator.sandbox.library.recipe import Failed, Values
from simulator.sandbox.library.training import Training


def main(arguments: list[str]) -> int:
    """Saves the options of one rank for mpirun. Returns 1 without mpirun. Exits with 2 if an option is wrong."""
    options = recipe.parser(view.program("metaseq")["options"]).parse_args(arguments)
    if options.task != "dummy_lm" or not ranks.leave_call("metaseq", {"options": vars(options)}):
        print("simulator: metaseq-train runs only with --task dummy_lm, started by mpirun", file=sys.stderr)
        return 1
    return 0


def simulate(calls: Sequence[Call], variables: Mapping[str, str], log: Log) -> tuple[int, int]:
    """Simulates all ranks. Returns the first rank that failed and its exit code, or (0, 0)."""
    try:
        _train(calls, variables, log)
    except Failed as error:
        log.line(f"Traceback (most recent call last):\n{error}", error.rank)
        return error.rank, 1
    return 0, 0


def _train(calls: Sequence[Call], variables: Mapping[str, str], log: Log) -> None:
    program, gpus = view.program("metaseq"), len(calls)
    by_rank = sorted(calls, key=lambda call: int(call.options["distributed_rank"]))
    _check_meeting(by_rank, program)
    places = [(call.rank.pod, int(call.options["device_id"])) for call in by_rank]
    connected = training.connect(places, variables, log, program["cuda_error"])
    values = Values(program, {**by_rank[0].options, "gpus": gpus, "host": places[0][0].hostname})
    values.check()
    options = Namespace(**by_rank[0].options)
    tokens = values["sequences"] * options.tokens_per_sample
    run = Training(values, options.max_update, tokens, gpus, log_steps=options.log_interval, write=log.line)
    run.say("begin")
    if options.aim_repo:
        run.say("aim")
    connected.check_memory(values["memory"], "torch.cuda.OutOfMemoryError")
    run.run(lambda: connected.seconds(values["flops"]))
    run.say("end", last=options.max_update)


def _check_meeting(by_rank: Sequence[Call], program: recipe.Recipe) -> None:
    """Raises Failed unless all ranks exist exactly once, and the init address is the address of rank 0."""
    wanted = max(call.options["distributed_world_size"] for call in by_rank)
    if [call.options["distributed_rank"] for call in by_rank] != list(range(wanted)):
        few = view.program("torchrun")["too_few"]
        after = program["store_timeout_s"] + 1
        raise Failed(f"RuntimeError: {few.format(after=after, joined=len(by_rank), wanted=wanted)}")
    where = urlsplit(by_rank[0].options["distributed_init_method"] or "")
    pod = view.load().resolve(where.hostname or "")
    if pod is None or pod.key != by_rank[0].rank.pod.key or not where.port:
        text = view.program("torchrun")["timed_out"]
        late = text.format(host=where.hostname, port=where.port, after=f"{program['store_timeout_s']}s")
        raise Failed(f"TimeoutError: {late}")
