"""`metaseq-train`: reads each rank's options, and simulates the training of all ranks until its last update."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlparse

from simulator.sandbox.library import ranks, recipe, training, view
from simulator.sandbox.library.nccl_log import Log
from simulator.sandbox.library.programs import Call
from simulator.sandbox.library.recipe import Failed
from simulator.sandbox.library.training import Training, Update

SPECIAL_SYMBOLS = 4
SCHEMES = ("barrierlesstcpr", "tcpr", "tcp")


class Rank(NamedTuple):
    """One rank, with its pod and its options."""

    pod: view.Pod
    options: Namespace


@dataclass(frozen=True)
class Model:
    """The memory and time that training the model needs, by the options of one rank."""

    options: Namespace
    gpus: int

    @property
    def sequences(self) -> int:
        """The sequences of one update, over all GPUs."""
        options = self.options
        return int(options.batch_size * options.update_freq * self.gpus // options.model_parallel_size)

    @property
    def vocabulary(self) -> int:
        return int(self.options.dict_size) + SPECIAL_SYMBOLS

    @property
    def parameters(self) -> int:
        layers, width = self.options.decoder_layers, self.options.decoder_embed_dim
        embeddings = self.vocabulary + self.options.tokens_per_sample + 2
        return int(layers * (12 * width**2 + 13 * width) + embeddings * width)

    def memory(self) -> float:
        """Returns one GPU's peak bytes: states, activations, logits, and the layers that are gathered at a time."""
        options, width, split = self.options, self.options.decoder_embed_dim, self.options.model_parallel_size
        sequence, micro = options.tokens_per_sample, options.batch_size
        states = (12 if options.memory_efficient_fp16 else 16) * self.parameters / self.gpus
        if options.no_reshard_after_forward:
            states += 2 * self.parameters / split
        kept = 18 / split if options.sequence_parallel else 4 + 14 / split
        if options.checkpoint_activations:
            kept = 2
        activations = kept * sequence * micro * width * options.decoder_layers
        attention = 6 * options.decoder_attention_heads / split * micro * sequence**2
        logits = 10 * sequence * micro * self.vocabulary / split
        gathered = (96 * width**2 + 4 * (self.vocabulary + sequence) * width) / split
        return float(states + activations + attention + logits + gathered + 44 * sequence * micro * width / split)

    def update(self, *, groups_span_nodes: bool) -> Update:
        """Returns the cost of one update: 6 operations for each weight and token, and attention.

        Every micro-batch gathers weights twice (once if they stay) and reduces gradients once.
        """
        options, width, layers = self.options, self.options.decoder_embed_dim, self.options.decoder_layers
        sequence = options.tokens_per_sample
        weights = 12 * layers * width**2 + self.vocabulary * width
        flops = self.sequences * sequence * (6 * weights + 12 * layers * width * sequence)
        passes = 2 if options.no_reshard_after_forward else 3
        exchanged = passes * 2 * self.parameters * options.update_freq
        between_ranks = 8 * layers * 2 * sequence * options.batch_size * width * options.update_freq
        return Update(flops, exchanged, between_ranks if groups_span_nodes else 0)


def main(arguments: list[str]) -> int:
    """Leaves one rank's call for mpirun. Returns 1 without mpirun; exits with 2 for a wrong command line."""
    options = recipe.parser(view.program("metaseq")["options"]).parse_args(arguments)
    if options.task != "dummy_lm":
        print(f"simulator: metaseq-train is simulated with --task dummy_lm, not {options.task}", file=sys.stderr)
        return 1
    if not ranks.leave_call("metaseq", {"options": vars(options)}):
        print("simulator: metaseq-train is simulated as started by mpirun only", file=sys.stderr)
        return 1
    return 0


def simulate(calls: Sequence[Call], variables: Mapping[str, str], log: Log) -> tuple[int, int]:
    """Simulates all ranks. Returns the first rank that failed and its exit code, or (0, 0)."""
    started = [Rank(call.rank.pod, Namespace(**call.options)) for call in calls]
    try:
        _train(started, variables, log)
    except Failed as error:
        log.line(f"Traceback (most recent call last):\n{error}", error.rank)
        return error.rank, 1
    return 0, 0


def _train(started: Sequence[Rank], variables: Mapping[str, str], log: Log) -> None:
    program = view.program("metaseq")
    by_rank = _meet(started, program, log)
    options, gpus = by_rank[0].options, len(by_rank)
    places = [(rank.pod, rank.options.device_id) for rank in by_rank]
    connected = training.connect(places, variables, log, program["cuda_error"])
    values = {**vars(options), "gpus": gpus, "host": by_rank[0].pod.hostname}
    if text := recipe.refusal(program["fails"], values):
        raise Failed(text)
    model = Model(options, gpus)
    values |= {"parameters": model.parameters // gpus, "sequences": model.sequences}
    tokens = model.sequences * options.tokens_per_sample
    every = options.log_interval
    played = Training(program, options.max_update, tokens, gpus, log_steps=every, values=values, write=log.line)
    played.say("connected")
    played.say("begin")
    if options.aim_repo:
        played.say("aim")
    connected.check_memory(model.memory(), "torch.cuda.OutOfMemoryError")
    update = model.update(groups_span_nodes=_groups_span_nodes(by_rank, options.model_parallel_size))

    def seconds() -> float:
        connected.check(program["cuda_error"])
        return connected.seconds(update)

    training.play(played, seconds)
    played.say("end", last=options.max_update)


def _meet(started: Sequence[Rank], program: recipe.Recipe, log: Log) -> list[Rank]:
    """Returns the ranks in order, once all have met at rank 0. Raises Failed if some are missing or refused."""
    sizes = {rank.options.distributed_world_size for rank in started}
    wanted, by_rank = max(sizes), dict[int, Rank]()
    if len(sizes) > 1 or wanted > len(started):
        text = view.program("torchrun")["too_few"]
        few = text.format(after=program["store_timeout_s"] + 1, joined=len(started), wanted=wanted)
        raise Failed(f"RuntimeError: {few}")
    for rank in started:
        number = rank.options.distributed_rank
        if number >= wanted or number in by_rank:
            why = "taken already" if number in by_rank else f"not below the world size {wanted}"
            raise Failed(f"ValueError: rank {number} is {why}", number)
        by_rank[number] = rank
    _check_head(by_rank[0], program, log)

    def shared(rank: Rank) -> dict[str, Any]:
        return {name: value for name, value in vars(rank.options).items() if name not in program["own"]}

    first = shared(by_rank[0])
    for number, rank in sorted(by_rank.items()):
        if differing := ", ".join(name for name, value in shared(rank).items() if first[name] != value):
            raise Failed(f"simulator: rank {number} has other options than rank 0: {differing}", number)
    return [by_rank[number] for number in range(wanted)]


def _check_head(first: Rank, program: recipe.Recipe, log: Log) -> None:
    """Raises Failed unless the address leads to rank 0, which connects to it too.

    The image's PyTorch (2.1.0a0) is assumed to predate pull request 108191, which changed the error to
    DistNetworkError.
    """
    method = first.options.distributed_init_method or ""
    where = urlparse(method)
    if where.scheme not in SCHEMES or not where.hostname or not where.port:
        known_ones = "tcp://, tcpr:// and barrierlesstcpr://HOST:PORT are"
        raise Failed(f"simulator: --distributed-init-method {method!r} is not simulated; {known_ones}")
    pod, texts = view.load().resolve(where.hostname), view.program("torchrun")
    values = {"host": where.hostname, "port": where.port, "after": f"{program['store_timeout_s']}s"}
    if pod is None and not view.is_address(where.hostname):
        log.line(texts["unresolved"].format_map(values))
    if pod is None or pod.key != first.pod.key:
        raise Failed(f"TimeoutError: {texts['timed_out'].format_map(values)}")


def _groups_span_nodes(by_rank: Sequence[Rank], split: int) -> bool:
    groups = (by_rank[start : start + split] for start in range(0, len(by_rank), split))
    return any(len({rank.pod.key for rank in group}) > 1 for group in groups)
