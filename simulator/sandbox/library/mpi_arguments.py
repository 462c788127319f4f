"""Parses those `mpirun` options of Open MPI 4 that the jobs of this repository use. Other options are errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

BINDINGS = ("none", "hwthread", "core", "l1cache", "l2cache", "l3cache", "socket", "numa", "board", "package")
FLAGS = {
    "allow-run-as-root": "allow_root",
    "tag-output": "tag_output",
    "oversubscribe": "oversubscribe",
}
SILENT_FLAGS = {"v", "verbose", "q", "quiet", "report-bindings", "display-map", "display-allocation", "nooversubscribe"}
VALUES = {
    **dict.fromkeys(("np", "n", "c"), "np"),
    **dict.fromkeys(("npernode", "N"), "per_node"),
    **dict.fromkeys(("hostfile", "machinefile"), "hostfile"),
    **dict.fromkeys(("host", "H"), "hosts"),
    "map-by": "map_by",
    "rank-by": "rank_by",
    "bind-to": "bind_to",
}
SILENT_VALUES = {"prefix", "wdir", "timeout", "output-filename"}
PER_RESOURCE = re.compile(r"ppr:(\d+):node(?::pe=(\d+))?$", re.IGNORECASE)


class MpiError(Exception):
    """An error of mpirun, with exit code 1."""


@dataclass(frozen=True)
class Options:
    """A parsed command line. `map_by` is "slot", "node" or "ppr". `cores` is the number per rank.

    `rank_by` is "slot", which numbers one node after the other, or "node", which alternates between nodes.
    """

    program: tuple[str, ...] = ()
    np: int = 0
    per_node: int = 0
    cores: int = 1
    hostfile: str = ""
    hosts: str = ""
    map_by: str = "slot"
    rank_by: str = "slot"
    bind_to: str = "core"
    exports: tuple[str, ...] = ()
    mca: Mapping[str, str] = field(default_factory=dict)
    allow_root: bool = False
    tag_output: bool = False
    oversubscribe: bool = False


def parse(arguments: list[str]) -> Options:
    """Parses the arguments. Raises MpiError with the wrong argument."""
    found: dict[str, str] = {}
    flags: dict[str, Any] = {}
    exports: list[str] = []
    mca: dict[str, str] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        name = word.lstrip("-")
        if name in FLAGS:
            flags[FLAGS[name]] = True
        elif name in VALUES:
            _set(found, VALUES[name], word, _take(rest, word))
        elif name == "x":
            exports.append(_take(rest, word))
        elif name in ("mca", "gmca"):
            parameter = _take(rest, word)
            mca[parameter] = _take(rest, word)
        elif name in SILENT_VALUES:
            _take(rest, word)
        elif name not in SILENT_FLAGS:
            raise MpiError(f"mpirun: Error: unknown option \"{word}\"\nType 'mpirun --help' for usage.")
    if not rest:
        raise MpiError("mpirun could not find anything to do: no executable was given.")
    options = Options(tuple(rest), exports=tuple(exports), mca=mca)
    return _mapped(replace(options, **flags), found)


def exported(options: Options, environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Returns the variables that -x exports, and the requested names that are not set."""
    variables: dict[str, str] = {}
    missing: list[str] = []
    for export in options.exports:
        name, given, value = export.partition("=")
        if given:
            variables[name] = value
        elif name in environment:
            variables[name] = environment[name]
        else:
            missing.append(name)
    return variables, missing


def _take(rest: list[str], word: str) -> str:
    if not rest:
        raise MpiError(f"mpirun: option {word} needs a value")
    return rest.pop(0)


def _set(found: dict[str, str], name: str, word: str, value: str) -> None:
    if name in found:
        raise MpiError(f"mpirun: {word} is given twice, with {found[name]!r} and {value!r}")
    if name in ("np", "per_node") and not value.isdigit():
        raise MpiError(f"mpirun: {word} must be a number of processes, not {value!r}")
    found[name] = value


def _mapped(options: Options, found: dict[str, str]) -> Options:
    policy = found.get("map_by", "slot")
    bind_to = found.get("bind_to", "core")
    if bind_to not in BINDINGS:
        raise MpiError(f"mpirun: unknown binding policy --bind-to {bind_to}; use one of {', '.join(BINDINGS)}")
    rank_by = found.get("rank_by", "node" if policy == "node" else "slot")
    if rank_by not in ("slot", "node"):
        raise MpiError(f"simulator: --rank-by {rank_by} is not simulated: use slot or node")
    options = replace(
        options,
        rank_by=rank_by,
        np=int(found.get("np", 0)),
        per_node=int(found.get("per_node", 0)),
        hostfile=found.get("hostfile", ""),
        hosts=found.get("hosts", ""),
        bind_to=bind_to,
    )
    if policy in ("slot", "node"):
        return replace(options, map_by="ppr" if options.per_node else policy)
    match = PER_RESOURCE.match(policy)
    if match is None:
        raise MpiError(f"simulator: --map-by {policy} is not simulated: use slot, node or ppr:N:node[:pe=M]")
    if options.per_node:
        raise MpiError("Conflicting directives for mapping policy: --map-by ppr and --npernode; give one of them.")
    cores = int(match[2] or 1)
    if cores > 1 and bind_to not in ("core", "hwthread"):
        raise MpiError(
            f"Conflicting directives for binding policy: pe={cores} binds to core, --bind-to asks for {bind_to}."
        )
    return replace(options, map_by="ppr", per_node=int(match[1]), cores=cores)
