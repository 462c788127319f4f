"""Bad settings are refused with all that is wrong: its path, what is allowed and the command that fixes it."""

from __future__ import annotations

import fnmatch
from typing import Any

import pulumi
import pytest

import workloads
from config.problems.errors import SettingsError
from config.reading import loader
from tests.support.case_files import bad_input
from tests.support.settings import INVENTORY, SECRET, WORKLOADS, as_engine, dev, load, platform, problems
from tests.support.sizes import H100

CASES = bad_input()
ON_DEV = {name: case for name, case in CASES.items() if "platformStack" not in case["stack"]}


def matches(text: str, expected: str) -> bool:
    pattern = expected.replace("[", "[[]").replace("...", "*")
    return fnmatch.fnmatchcase(text, pattern)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_says_what_is_wrong_and_how_to_fix_it(case: dict[str, Any]) -> None:
    others = {name: platform(stack) for name, stack in case.get("platforms", {}).items()} | case.get("others", {})
    found = problems(case["stack"], name=case.get("name", "dev"), others=others)
    said = [text for problem in found for text in (str(problem).partition("\n")[0], problem.fix)]
    assert len(said) == len(case["says"]), said
    for text, expected in zip(said, case["says"], strict=True):
        assert matches(text, expected), f"{text}\n  expected {expected}"
    assert all(problem.allowed for problem in found)


@pytest.mark.parametrize("given", [[{"name": "A", "value": "b"}], "A=b", 1])
def test_a_map_of_text_is_shown_by_an_example(given: object) -> None:
    (problem,) = problems({"vmSku": H100, "operators": {"networkOperator": {"ofedEnv": given}}})
    assert problem.allowed == 'a map of text, as in {NAME: "value"}'


def on_dev(row: dict[str, Any]) -> dict[str, Any]:
    """The row laid over the stack `dev`, whose workloads all run too. A row without a size means that there is none."""
    left_out = {"vmSku", "nodeCount", *(["modelSize"] if "sized" in str(row) else [])}
    stack = {key: value for key, value in dev().items() if key not in left_out}
    if names := row.get("workloads"):
        others = [name for name in stack["workloads"].split(",") if name not in names]
        stack["workloads"] = [*names, *others] if isinstance(names, list) else ",".join([names, *others])
    stack["cluster"] = {}  # that one allows local accounts, without which nobody could log in
    found: dict[str, Any] = laid(stack, {key: value for key, value in row.items() if key != "workloads"})
    private = isinstance(network := found.get("network"), dict) and network.get("private")
    if private and "sharedClass" not in found["storage"]:
        found["storage"] = {"sharedFiles": "nfs"} | found["storage"]  # a private stack has to say, for the notebook
    return found


def laid(base: Any, over: Any) -> Any:
    """`over` laid over `base`: maps deep, all else replaced."""
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    return base | {key: laid(base.get(key), value) for key, value in over.items()}


@pytest.mark.parametrize("case", ON_DEV.values(), ids=ON_DEV.keys())
def test_says_the_same_on_dev_with_all_workloads(case: dict[str, Any]) -> None:
    """And nothing beside it but what follows: what is mended by a key that the row sets."""
    row = case["stack"]
    known = {name: each for name, each in WORKLOADS.items() if name != "sized" or name in str(row)} | workloads.find()
    found = {str(problem).partition("\n")[0]: problem for problem in problems(on_dev(row), known=known, secret=SECRET)}
    for expected in case["says"][::2]:
        told = [text for text in found if matches(text, expected)]
        assert told, found
        for text in told:
            del found[text]
    assert not [text for text, other in found.items() if not any(key in other.fix for key in {"vmSku", *row})]


def test_the_message_lists_everything() -> None:
    with pytest.raises(SettingsError) as caught:
        load({"vmSku": H100, "nodeCount": "2 nodes", "cluster": {"tier": "Gold"}})
    assert str(caught.value) == (
        "2 problems in the settings of stack dev; nothing was changed\n"
        "\n"
        "  cluster.tier is 'Gold'\n"
        "    allowed: Free, Standard, Premium\n"
        "    fix:     change cluster.tier in the stack file to what is allowed\n"
        "\n"
        "  nodeCount is '2 nodes'\n"
        "    allowed: a whole number from 0 to 1000\n"
        "    fix:     pulumi config set -s dev nodeCount 2"
    )


def test_a_message_that_lists_only_some_of_the_problems_says_so() -> None:
    with pytest.raises(SettingsError) as caught:
        load({"vmSku": H100, "cluster": {f"unknown{number}": number for number in range(40)}})
    first, *_, last = str(caught.value).splitlines()
    assert first == "more than 25 problems in the settings of stack dev; nothing was changed"
    assert last == "  The next preview lists more."


def test_a_broken_value_does_not_cause_more_words() -> None:
    """The default that stands in for a broken `nodeCount` is not held against a workload."""
    stack = {
        "vmSku": H100,
        "nodeCount": "many",
        "workloads": "training",
        "workloadOptions": {"training": {"numNodes": 8}},
    }
    assert [problem.path for problem in problems(stack)] == [("nodeCount",)]


@pytest.mark.parametrize("key", ["nodeCount", "nodeCounts", "unheardOf", "cluster", "cluster.tier"])
def test_secret_values_are_not_printed(key: str) -> None:
    found = problems({"vmSku": H100, key: "hunter2"}, secret=(key,))
    assert found
    assert "hunter2" not in str(SettingsError(found))


def test_a_stack_name_too_long_for_the_cluster() -> None:
    (problem,) = problems({"vmSku": H100}, name="x" * 60)
    assert "60 characters" not in problem.what
    assert problem.fix == f"pulumi stack rename -s {'x' * 60} {'x' * 44}"


def test_the_program_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine shows a RunError's text and nothing else."""
    pulumi.runtime.set_all_config(as_engine({"vmSku": H100, "nodeCount": "-5"}))
    monkeypatch.setattr(pulumi, "get_project", lambda: "ai-on-aks")
    monkeypatch.setattr(pulumi, "get_stack", lambda: "dev")
    with pytest.raises(pulumi.RunError, match="nodeCount is '-5'") as caught:
        loader.load(INVENTORY)
    assert caught.value.__suppress_context__
