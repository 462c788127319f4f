from __future__ import annotations

import copy
import functools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pulumi_kubernetes.core.v1  # noqa: F401 - the first pod overrides import it, which takes a second
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import workloads
from config.problems.errors import MAX_LISTED, Problem, SettingsError
from config.problems.fixes import Path
from config.rules.advice import warnings
from config.rules.platform_stack import shared_settings
from config.schema.json_schema import schema_at, schema_of
from config.schema.readings import example
from config.schema.workload import WorkloadOptions
from tests.support.settings import INVENTORY, SECRET, dev, load
from tests.support.sizes import H100
from tests.unit.config import suggested

KNOWN = workloads.find()
DEV = dev()
WITH_POOLS = {key: value for key, value in DEV.items() if key not in ("vmSku", "nodeCount")} | {
    "pools": {"gpu": {"vmSku": H100}}
}
SLOWEST = 200
"""An input's maximum time, as a multiple of `dev`'s (two milliseconds)."""
LONGEST = 30_000
"""A message's maximum length in characters."""
BY_HAND = 10_000
"""The maximum length of a stack file for suggestions, which take long."""

Key = tuple[Path, Mapping[str, Any]]
Change = tuple[Path, Any]


def keys(schema: Mapping[str, Any], path: Path = (), prefix: Path = ()) -> Iterator[Key]:
    """Maps of free names get some entries."""
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
IDS = [".".join(map(str, path)) for path, _ in KEYS]

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
    cut = st.integers(0, max(len(text) - 1, 0)).map(lambda at: text[:at] + text[at + 1 :])
    return cut | st.sampled_from([text.lower(), text.upper(), f"{text} ", f" {text}", text * 2, text[:-1], f"{text}\0"])


SCALARS = st.sampled_from(ODD) | st.text(max_size=20) | st.integers() | st.floats()
NESTED = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3)
)
DEEP = st.integers(1, 200).map(lambda levels: json.loads('{"a":' * levels + "[]" + "}" * levels))
BAD = SCALARS | NESTED | st.integers(-2, 2000) | st.sampled_from(HUGE) | DEEP


def values(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    choices = [choice for choice in (*schema.get("enum", ()), schema.get("default")) if choice is not None]
    near = [mistyped(choice) for choice in choices if isinstance(choice, str)]
    good = [st.sampled_from(choices)] if choices else []
    return st.one_of(*good, *near, BAD)


@functools.cache
def changes_of(index: int) -> st.SearchStrategy[Change]:
    path, schema = KEYS[index]
    right = st.just(path[-1])
    name = st.one_of(right, right, mistyped(str(path[-1])), st.text(max_size=10))
    return st.tuples(name.map(lambda name: (*path[:-1], name)), values(schema))


def changed(stack: Mapping[str, Any], change: Change) -> dict[str, Any]:
    found = copy.deepcopy(dict(stack))
    here: Any = found
    path, value = change
    for part in path[:-1]:
        if not isinstance(here.get(part), dict):
            here[part] = {}
        here = here[part]
    here[path[-1]] = value
    return found


def refusal(stack: Mapping[str, Any]) -> SettingsError | None:
    try:
        found = load(stack, known=KNOWN, secret=SECRET)
    except SettingsError as error:
        return error
    for text in (*warnings(found), json.dumps(shared_settings(found), ensure_ascii=False)):
        assert text.encode()
    return None


def problems(stack: Mapping[str, Any]) -> list[Problem]:
    error = refusal(stack)
    return list(error.problems) if error else []


def seconds(work: Callable[[], Any]) -> float:
    """CPU time does not depend on other processes."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


@pytest.fixture(scope="module")
def usual() -> float:
    refusal(DEV)
    return min(seconds(lambda: refusal(DEV)) for _ in range(5))


def check_message(problem: Problem) -> None:
    first, allowed, fix = str(problem).split("\n")
    assert first.isprintable()
    assert fix.isprintable()
    assert problem.what
    assert len(allowed) > len("    allowed: ")


def check(stack: dict[str, Any], usual: float) -> None:
    error = None

    def look() -> None:
        nonlocal error
        error = refusal(stack)

    took = seconds(look)
    if took > SLOWEST * usual:  # the machine may be slower now
        took, usual = min(took, seconds(look)), max(usual, seconds(lambda: refusal(DEV)))
    assert took <= SLOWEST * usual
    if error:
        assert len(str(error)) <= LONGEST
        assert str(error).encode()
        for problem in error.problems:
            check_message(problem)
        if len(error.problems) < MAX_LISTED and len(json.dumps(stack, default=str)) <= BY_HAND:
            suggested.check(stack, problems)


STEADY = settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False
)
CHANGES = st.sampled_from(range(len(KEYS))).flatmap(changes_of)
ANYTHING = st.tuples(st.sampled_from([DEV, WITH_POOLS]), st.lists(CHANGES, min_size=1, max_size=2))


def with_changes(stack: dict[str, Any], several: list[Change]) -> dict[str, Any]:
    return functools.reduce(changed, several, stack)


@given(ANYTHING)
@settings(STEADY, max_examples=200)
def test_random_input(usual: float, drawn: tuple[dict[str, Any], list[Change]]) -> None:
    check(with_changes(*drawn), usual)


@pytest.mark.long
@given(ANYTHING)
@settings(STEADY, max_examples=5_000)
def test_more_random_input(usual: float, drawn: tuple[dict[str, Any], list[Change]]) -> None:
    check(with_changes(*drawn), usual)


SECTIONS = [(), ("cluster",), ("network",), ("storage",), ("operators",), ("operators", "kueue"), ("pools", "gpu")]


@pytest.mark.parametrize("section", SECTIONS, ids=".".join)
def test_a_key_in_the_wrong_section(section: Path) -> None:
    base = {"pools": {"gpu": {"vmSku": H100}}}
    for (name, value), schema in {(path[-1], str(example(each))): each for path, each in KEYS}.items():
        suggested.check(changed(base, ((*section, name), example(schema) or value)), problems)


@pytest.mark.parametrize("stack", [DEV, WITH_POOLS], ids=["default pool", "pools"])
def test_the_unchanged_stack_is_valid(stack: dict[str, Any]) -> None:
    assert refusal(stack) is None


@pytest.mark.parametrize("index", range(len(KEYS)), ids=IDS)
def test_each_key_with_some_odd_and_huge_values(index: int, usual: float) -> None:
    for value in (*ODD, *HUGE)[index % 30 :: 30]:
        check(one(index, value), usual)


@pytest.mark.long
@pytest.mark.parametrize("index", range(len(KEYS)), ids=IDS)
def test_each_key_with_all_odd_and_huge_values(index: int, usual: float) -> None:
    for value in (*ODD, *HUGE):
        check(one(index, value), usual)


def one(index: int, value: Any) -> dict[str, Any]:
    path = KEYS[index][0]
    return changed(WITH_POOLS if path[0] == "pools" else DEV, (path, value))
