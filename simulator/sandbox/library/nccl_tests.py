"""`all_reduce_perf` of nccl-tests."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from simulator.sandbox.library import nccl, nccl_log, view
from simulator.sandbox.library.ranks import Rank
from simulator.world import network

PROGRAMS = {"all_reduce_perf"}
TEST_VERSION = "2.19.6"
TYPE_BYTES = {
    **dict.fromkeys(("int8", "uint8", "fp8_e4m3", "fp8_e5m2"), 1),
    **dict.fromkeys(("half", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float"), 4),
    **dict.fromkeys(("int64", "uint64", "double"), 8),
}
OPERATIONS = ("sum", "prod", "max", "min", "avg", "mulsum")
LONG = {
    "nthreads": "t", "ngpus": "g", "minbytes": "b", "maxbytes": "e", "stepbytes": "i", "stepfactor": "f", "iters": "n",
    "agg_iters": "m", "warmup_iters": "w", "check": "c", "op": "o", "datatype": "d", "root": "r", "blocking": "z",
    "cudagraph": "G", "average": "a", "parallel_init": "p", "report_cputime": "C", "timeout": "T",
    "local_register": "R", "run_cycles": "N", "output_file": "J", "stream_null": "y",
}  # fmt: skip
DEFAULTS = {"t": "1", "g": "1", "b": "32M", "e": "32M", "i": "1M", "f": "1", "n": "20", "m": "1", "w": "5", "c": "1",
            "o": "sum", "d": "float", "r": "0", "G": "0"}  # fmt: skip
RUN_SECONDS = 1.0
GIB = 2**30


class UsageError(Exception):
    """A command line that nccl-tests rejects."""


class CudaError(Exception):
    """A failed CUDA call, after which nccl-tests exits with 2."""


def run(
    ranks: Sequence[Rank],
    command: Sequence[str],
    variables: Mapping[str, str],
    known: view.View,
    *,
    tag: bool = False,
) -> int:
    """Runs all processes. Returns nccl-tests' exit code: 0, or for an error of usage 1, of CUDA 2, of NCCL 3."""
    log = nccl_log.Log(variables, tag=tag)
    name, host = Path(command[0]).name, ranks[0].pod.hostname
    try:
        options = parse(command[1:])
        devices = _devices(ranks, int(options["t"]) * int(options["g"]), variables, known)
        _header(log, name, options, devices)
        _table(log, options, nccl.initialise(devices, variables, known, log))
    except UsageError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except CudaError as error:
        print(f"{host}: Test CUDA failure common.cu:1022 '{error}'\n .. {host}: Test failure common.cu:891", flush=True)
        return 2
    except nccl.NcclError as error:
        print(
            f"{host}: Test NCCL failure common.cu:1204 '{error} / '\n .. {host}: Test failure common.cu:915", flush=True
        )
        return 3
    log.line(f"#\n# Collective test concluded: {name}")
    return 0


def parse(arguments: Sequence[str]) -> dict[str, str]:
    """Returns settings by their short option. Raises UsageError."""
    settings = dict(DEFAULTS)
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            letter = LONG.get(name, "")
        else:
            letter, value = word[1:2], word[2:]
        if not word.startswith("-") or letter not in LONG.values():
            raise UsageError(f"invalid option {word!r}")
        if not value and not rest:
            raise UsageError(f"option {word} needs a value")
        settings[letter] = value or rest.pop(0)
    if settings["d"] not in TYPE_BYTES or settings["o"] not in OPERATIONS:
        raise UsageError(f"unknown datatype {settings['d']!r} or operation {settings['o']!r}")
    for letter in "tgfnmwcG":
        if not settings[letter].isdecimal():
            raise UsageError(f"option -{letter} must be a whole number, not {settings[letter]!r}")
    _check_sizes(settings)
    return settings


def _check_sizes(settings: Mapping[str, str]) -> None:
    """Raises UsageError for wrong sizes, such as a step of 0, which would never end."""
    first, last = size(settings["b"]), size(settings["e"])
    if first > last:
        raise UsageError(f"invalid sizes: -b {settings['b']} is more than -e {settings['e']}")
    if _next_size(first, settings) == first:
        step = f"-f {settings['f']}" if int(settings["f"]) > 1 else f"-i {settings['i']}"
        raise UsageError(f"simulator: sizes from -b {settings['b']} by {step} would never end")


def size(text: str) -> int:
    """Returns a size such as `8`, `32M` or `16G` (binary multiples) in bytes. Raises UsageError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGkmg]?)", text)
    if match is None:
        raise UsageError(f"failed to parse size {text!r}")
    return int(float(match[1]) * 1024 ** " KMG".index(match[2].upper() or " "))


def _devices(
    ranks: Sequence[Rank], per_process: int, variables: Mapping[str, str], known: view.View
) -> list[nccl.Device]:
    devices = []
    for index, rank in enumerate(ranks):
        gpus = visible(known.gpus_of(rank.pod), variables)
        for number in range(rank.local * per_process, (rank.local + 1) * per_process):
            if not gpus:
                raise CudaError("no CUDA-capable device is detected")
            if number >= len(gpus):
                raise CudaError("invalid device ordinal")
            if not gpus[number]["healthy"]:
                raise CudaError("unspecified launch failure")  # CUDA's message after Xid 79
            process = nccl_log.Process(
                index * per_process + number % per_process, rank.pod.hostname, 60 + rank.local, number
            )
            devices.append(nccl.Device(process, rank.pod, gpus[number]))
    return devices


def visible(gpus: list[dict[str, Any]], variables: Mapping[str, str]) -> list[dict[str, Any]]:
    chosen = variables.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return gpus
    return [gpus[int(index)] for index in chosen.split(",") if index.isdigit() and int(index) < len(gpus)]


def _header(log: nccl_log.Log, name: str, options: Mapping[str, str], devices: Sequence[nccl.Device]) -> None:
    step = f"{options['f']}(factor)" if int(options["f"]) > 1 else f"{size(options['i'])}(bytes)"
    log.line(f"# nccl-tests version {TEST_VERSION} nccl-headers=22703 nccl-library=22703")
    log.line(f"# Collective test starting: {name}")
    log.line(
        f"# nThread {options['t']} nGpus {options['g']} minBytes {size(options['b'])} maxBytes {size(options['e'])} "
        f"step: {step} warmup iters: {options['w']} iters: {options['n']} agg iters: {options['m']} "
        f"validation: {options['c']} graph: {options['G']}"
    )
    log.line("#\n# Using devices")
    for device in devices:
        who = device.process
        bus = device.gpu["pci"].rpartition(".")[0]
        where = f"Pid {who.pid:6d} on {who.host:>10} device {who.device:2d}"
        log.line(f"#  Rank {who.rank:2d} Group  0 {where} [{bus}] {device.gpu['product']}")


def _table(log: nccl_log.Log, options: Mapping[str, str], communicator: nccl.Communicator) -> None:
    """NCCL logs the channels below the column names, because the first run creates the channels."""
    memory = min(int(device.gpu["memory_gb"]) for device in communicator.setup.devices) * 10**9
    fits = (memory - GIB) // (3 if options["c"] != "0" else 2)  # buffers to send, to receive, and to check
    largest = size(options["e"])
    if largest > fits:
        log.line(f"#\n# Reducing maxBytes to {fits} due to memory limitation")
        largest = fits
    sizes = list(_sizes(options, largest))
    _columns(log)
    collective = communicator.connect(log)
    numbers = view.numbers()
    total = 0.0
    for message in sizes:
        nccl_log.pause(RUN_SECONDS / len(sizes))
        seconds = network.seconds(collective, message, numbers)
        algorithm = message / seconds / 1e9
        total += algorithm * collective.bus_factor
        log.line(_row(message, options, seconds * 1e6, algorithm, algorithm * collective.bus_factor))
    log.line("# Out of bounds values : 0 OK")
    log.line(f"# Avg bus bandwidth    : {total / len(sizes):g}")


def _sizes(options: Mapping[str, str], largest: int) -> Iterator[int]:
    """Yields the message sizes up to `largest`. If the first size exceeds it, yields `largest` (src/common.cu, run)."""
    message = min(size(options["b"]), largest)
    while message <= largest:
        yield message
        message = _next_size(message, options)


def _next_size(message: int, options: Mapping[str, str]) -> int:
    """If the factor is 1 or less, adds the step instead, like nccl-tests."""
    factor = int(options["f"])
    return message * factor if factor > 1 else message + size(options["i"])


def _columns(log: nccl_log.Log) -> None:
    gap = "#" + " " * 54
    log.line(f"#\n{gap}       out-of-place                       in-place")
    measured = f"{'time':>9}{'algbw':>8}{'busbw':>8}{'#wrong':>8}"
    log.line(f"#{'size':>11}{'count':>14}{'type':>10}{'redop':>8}{'root':>8}{measured}{measured}")
    units = f"{'(us)':>9}{'(GB/s)':>8}{'(GB/s)':>8}{'':>8}"
    log.line(f"#{'(B)':>11}{'(elements)':>14}{'':>26}{units}{units}")


def _row(message: int, options: Mapping[str, str], microseconds: float, algorithm: float, bus: float) -> str:
    digits = 0 if microseconds >= 10000 else 1 if microseconds >= 100 else 2
    wrong = "0" if options["c"] != "0" else "N/A"
    measured = f"  {microseconds:7.{digits}f}  {algorithm:6.2f}  {bus:6.2f}  {wrong:>6}"
    count = message // TYPE_BYTES[options["d"]]
    return f"{message:12d}  {count:12d}  {options['d']:>8}  {options['o']:>6}  {-1:6d}{measured}{measured}"
