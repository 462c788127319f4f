"""Whatever a stack file holds, settings come of it or our message does, soon: generated input for `dev`.

The keys come from the models themselves, so that new ones are tried by themselves.
"""

from __future__ import annotations

import copy
import functools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pulumi_kubernetes.core.v1  # noqa: F401 - read for the first overrides of pods: its second is not theirs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import workloads
from config.problems.errors import Problem, SettingsError
from config.problems.fixes import Path
from config.reading.trial import MAX_LENGTH
from config.rules.advice import warnings
from config.rules.platform_stack import shared_settings
from config.schema.readings import example
from config.schema.translate import schema_at, schema_of
from config.schema.workload import WorkloadOptions
from tests.support.settings import H100, INVENTORY, SECRET, dev, load
from tests.units.config import commands, protection

KNOWN = workloads.find()
DEV = dev()
WITH_POOLS = {key: value for key, value in DEV.items() if key not in ("vmSku", "nodeCount")} | {
    "pools": {"gpu": {"vmSku": H100}}
}
SLOWEST = 200
"""How many times as long as `dev` itself any input may take: that takes two milliseconds, so this is half a second."""
LONGEST = 30_000
"""Characters of a message."""
MOST = 25
"""Problems that one message tells."""

Key = tuple[Path, Mapping[str, Any]]
Change = tuple[Path, Any]


def keys(schema: Mapping[str, Any], path: Path = (), prefix: Path = ()) -> Iterator[Key]:
    """Every key that a model has, with its schema; maps of free names have an entry."""
    here = schema_at(schema, path)
    entries = here.get("additionalProperties") or next(iter(here.get("patternProperties", {}).values()), None)
    names = [*here.get("properties", {}), *(["data", "gpu", "olmo-data"] if isinstance(entries, Mapping) else [])]
    for name in names:
        yield (*prefix, *path, name), schema_at(schema, (*path, name))
        yield from keys(schema, (*path, name), prefix)


OPTIONS: dict[str, type[WorkloadOptions]] = {name: spec.options for name, spec in KNOWN.items()}
KEYS: list[Key] = [
    *keys(schema_of(INVENTORY.stack_file)),
    *(key for name, model in OPTIONS.items() for key in keys(schema_of(model), prefix=("workloadOptions", name))),
]

TOP = {path[0] for path, _ in KEYS}
HUGE = [
    *("a" * 30_000, "1" * 5_000, "1" * 30_000 + "x", "a." * 10_000 + "!", "-" * 30_000, "a" * 1_000_000),
    *(["x"] * 5_000, [[]] * 5_000, {f"key{number}": {} for number in range(3_000)}, {"x" * 30_000: 1}),
    *("metaseq," * 5_000, [f"name{number}" for number in range(3_000)], "[" * 30_000, '{"a":' * 10_000),
    *(10**30, -(10**30), 1e300, float("nan"), float("inf")),
]
ODD = [
    *(None, True, False, 0, 1, -1, 2.5, "", " ", [], {}, [None], {"": None}, [[1]], "null", "{}", "[]", '"a"', "nan"),
    *("true", "yes", "on", "0", "1_0", "+1", "0x10", "\u0661", "-x", "--", "$(x)", "'", '"', "a\\", "&&", "\ud800"),
    *("\0", "a\nb", "\x1b[31mred", "\u202e", "\U0001f600", "a,,b", "a:b", "sku=gpu", "../..", '{"a": 1}', "<value>"),
]


def mistyped(text: str) -> st.SearchStrategy[str]:
    """Names near to one that is known."""
    cut = st.integers(0, max(len(text) - 1, 0)).map(lambda at: text[:at] + text[at + 1 :])
    return cut | st.sampled_from([text.lower(), text.upper(), f"{text} ", f" {text}", text * 2, text[:-1], f"{text}\0"])


SCALARS = st.sampled_from(ODD) | st.text(max_size=20) | st.integers() | st.floats()
NESTED = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3)
)
DEEP = st.integers(1, 200).map(lambda levels: json.loads('{"a":' * levels + "[]" + "}" * levels))
BAD = SCALARS | NESTED | st.integers(-2, 2000) | st.sampled_from(HUGE) | DEEP


def values(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """What somebody might set where the schema holds: good values, near ones, and all else."""
    choices = [choice for choice in (*schema.get("enum", ()), schema.get("default")) if choice is not None]
    near = [mistyped(choice) for choice in choices if isinstance(choice, str)]
    good = [st.sampled_from(choices)] if choices else []
    return st.one_of(*good, *near, BAD)


@functools.cache
def changes_of(index: int) -> st.SearchStrategy[Change]:
    """A key, at times mistyped or of no name at all, and what it is set to. To make it takes longer than to draw."""
    path, schema = KEYS[index]
    right = st.just(path[-1])
    name = st.one_of(right, right, mistyped(str(path[-1])), st.text(max_size=10))
    return st.tuples(name.map(lambda name: (*path[:-1], name)), values(schema))


def changed(stack: dict[str, Any], change: Change) -> dict[str, Any]:
    """The stack with another value at a path; maps are made on the way."""
    found = copy.deepcopy(stack)
    here: Any = found
    path, value = change
    for part in path[:-1]:
        if not isinstance(here.get(part), dict):
            here[part] = {}
        here = here[part]
    here[path[-1]] = value
    return found


def refusal(stack: dict[str, Any]) -> SettingsError | None:
    """What is said of the stack; None where it can be deployed, as far as settings tell."""
    try:
        found = load(stack, known=KNOWN, secret=SECRET)
    except SettingsError as error:
        return error
    for text in (*warnings(found), json.dumps(shared_settings(found), ensure_ascii=False)):
        assert text.encode()
    return None


def seconds(work: Callable[[], Any]) -> float:
    """CPU time, which others that run do not lengthen."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


@pytest.fixture(scope="module")
def usual() -> float:
    """How long `dev` takes."""
    refusal(DEV)
    return min(seconds(lambda: refusal(DEV)) for _ in range(5))


def complete(problem: Problem) -> None:
    """It has all that a message needs, each part on one line that every terminal can print."""
    first, allowed, fix = str(problem).split("\n")
    assert first.isprintable()
    assert fix.isprintable()
    assert problem.what
    assert len(allowed) > len("    allowed: ")


def mends(problems: Sequence[Problem], stack: dict[str, Any]) -> None:
    """The commands name keys that are there, and after all of them, nothing is left of what each was to mend.

    Nor is anything wrong with what they set that was not before, unless that key could not be left out either.
    """
    fixes = [problem for problem in problems if commands.is_command(problem.fix)]
    after = stack
    for fix in dict.fromkeys(problem.fix for problem in fixes):
        for path, value in commands.parsed(fix):
            assert path[0] in TOP if value is not None else commands.is_there(stack, path), fix
        after = commands.mended(after, fix)
    left = found_in(after)
    told = {(problem.path, problem.what) for problem in problems}
    for problem in fixes:
        assert (problem.path, problem.what) not in left, problem.fix
        assert not protection.loses(stack, commands.mended(stack, problem.fix)), problem.fix
        alone = found_in(commands.mended(stack, problem.fix)) if len(fixes) > 1 else left
        assert like(problem, alone) < like(problem, told), "not by itself"
        for path, value in commands.parsed(problem.fix):
            new = {what for where, what in left - told if where[: len(path)] == tuple(path)}
            assert value is None or not new or refused_without(after, path), (problem.fix, new)


def like(problem: Problem, found: set[tuple[Path, str]]) -> int:
    """How many are wrong as this one is: of a list, an equal entry takes the place of one that is taken out."""

    def without_places(path: Path) -> Path:
        return tuple(part for part in path if not isinstance(part, int))

    own = (without_places(problem.path), problem.what)
    return [(without_places(path), what) for path, what in found].count(own)


def found_in(stack: dict[str, Any]) -> set[tuple[Path, str]]:
    """Where something is wrong with the stack, and what."""
    error = refusal(stack)
    return {(problem.path, problem.what) for problem in error.problems} if error else set()


def refused_without(stack: dict[str, Any], path: list[str | int]) -> bool:
    """Whether something is wrong at a path once nothing stands there."""
    return any(where[: len(path)] == tuple(path) for where, _ in found_in(commands.without(stack, path)))


def holds(stack: dict[str, Any], usual: float) -> None:
    """One input keeps what this file promises."""
    error = None

    def look() -> None:
        nonlocal error
        error = refusal(stack)

    took = seconds(look)
    if took > SLOWEST * usual:  # or the machine is slower than it was
        took, usual = min(took, seconds(look)), max(usual, seconds(lambda: refusal(DEV)))
    assert took <= SLOWEST * usual
    if error:
        assert len(str(error)) <= LONGEST
        assert str(error).encode()
        for problem in error.problems:
            complete(problem)
        # Else there may be more, which move up; and of longer settings, what fixes leave behind is not looked for.
        if len(error.problems) < MOST and len(json.dumps(stack, default=str)) <= MAX_LENGTH:
            mends(error.problems, stack)


STEADY = settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False
)
CHANGES = st.sampled_from(range(len(KEYS))).flatmap(changes_of)
ANYTHING = st.tuples(st.sampled_from([DEV, WITH_POOLS]), st.lists(CHANGES, min_size=1, max_size=2))


def laid(stack: dict[str, Any], several: list[Change]) -> dict[str, Any]:
    for change in several:
        stack = changed(stack, change)
    return stack


@given(ANYTHING)
@settings(STEADY, max_examples=200)
def test_any_input_is_taken_or_refused_in_our_words(usual: float, drawn: tuple[dict[str, Any], list[Change]]) -> None:
    holds(laid(*drawn), usual)


@pytest.mark.long
@given(ANYTHING)
@settings(STEADY, max_examples=5_000)
def test_much_more_of_it(usual: float, drawn: tuple[dict[str, Any], list[Change]]) -> None:
    holds(laid(*drawn), usual)


SECTIONS = [(), ("cluster",), ("network",), ("storage",), ("operators",), ("operators", "kueue"), ("pools", "gpu")]


@pytest.mark.parametrize("section", SECTIONS, ids=".".join)
def test_a_misplaced_key_is_moved_only_where_its_value_is_valid(section: Path) -> None:
    base = {"pools": {"gpu": {"vmSku": H100}}}
    for (name, value), schema in {(path[-1], str(example(each))): each for path, each in KEYS}.items():
        stack = changed(base, ((*section, name), example(schema) or value))
        error = refusal(stack)
        fixes = [problem.fix for problem in error.problems if commands.is_command(problem.fix)] if error else []
        after = functools.reduce(commands.mended, fixes, stack)
        told = {(problem.path, problem.what) for problem in error.problems} if error else set()
        for path, _ in (command for fix in fixes for command in commands.parsed(fix)):
            new = [
                where for where, _ in found_in(after) - told if all(map(str.__eq__, map(str, where), map(str, path)))
            ]
            assert not new, fixes


def test_each_of_two_equal_entries_is_taken_out() -> None:
    """Taking out the first brings the second to its place, where the same is wrong."""
    stack = {"pools": {"gpu": {"vmSku": "Standard_ND96isr_H100_v5", "taints": [-1, -1]}}}
    error = refusal(stack)
    assert error is not None
    assert len(error.problems) == 2
    mends(error.problems, stack)


@pytest.mark.parametrize("value", [0, "no", False])
def test_a_mistyped_protection_offers_no_fix_that_fixes_only_beside_another(value: Any) -> None:
    stack = changed(DEV, (("storage", "accounts", "gpu", "containers", "olmo-data", "upoad"), value))
    error = refusal(stack)
    assert error is not None
    mends(error.problems, stack)


@pytest.mark.parametrize("stack", [DEV, WITH_POOLS], ids=["default pool", "pools"])
def test_what_is_changed_is_good(stack: dict[str, Any]) -> None:
    assert refusal(stack) is None


@pytest.mark.parametrize("index", range(len(KEYS)), ids=[".".join(map(str, path)) for path, _ in KEYS])
def test_each_key_with_some_of_what_is_odd_or_huge(index: int, usual: float) -> None:
    for value in (*ODD, *HUGE)[index % 30 :: 30]:
        holds(one(index, value), usual)


@pytest.mark.long
@pytest.mark.parametrize("index", range(len(KEYS)), ids=[".".join(map(str, path)) for path, _ in KEYS])
def test_each_key_with_all_of_it(index: int, usual: float) -> None:
    for value in (*ODD, *HUGE):
        holds(one(index, value), usual)


def one(index: int, value: Any) -> dict[str, Any]:
    path = KEYS[index][0]
    return changed(WITH_POOLS if path[0] == "pools" else DEV, (path, value))
