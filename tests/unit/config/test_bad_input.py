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
def test_reports_each_problem_with_its_fix(case: dict[str, Any]) -> None:
    others = {name: platform(stack) for name, stack in case.get("platforms", {}).items()} | case.get("others", {})
    found = problems(case["stack"], name=case.get("name", "dev"), others=others)
    texts = [text for problem in found for text in (str(problem).partition("\n")[0], problem.fix)]
    assert len(texts) == len(case["problems"]), texts
    for text, expected in zip(texts, case["problems"], strict=True):
        assert matches(text, expected), f"{text}\n  expected {expected}"
    assert all(problem.allowed for problem in found)


@pytest.mark.parametrize(
    ("keys", "allowed"),
    [
        ({"operators": {"networkOperator": {"ofedEnv": "A=b"}}}, 'a map of text, as in {NAME: "value"}'),
        ({"cluster": {"authorizedIpRanges": None}}, "a list; each entry is a range of public IPv4 addresses ..."),
        ({"prices": {"Standard_Foo": 60.5}}, "one of ... names, such as Standard_E8s_v6, ..."),
    ],
)
def test_allowed_values_are_described(keys: dict[str, Any], allowed: str) -> None:
    (problem,) = problems({"vmSku": H100, **keys})
    assert matches(problem.allowed, allowed)


def on_dev(row: dict[str, Any]) -> dict[str, Any]:
    """The stack has only the row's VM size, if any."""
    left_out = {"vmSku", "nodeCount", *(["modelSize"] if "sized" in str(row) else [])}
    stack = {key: value for key, value in dev().items() if key not in left_out}
    if names := row.get("workloads"):
        others = [name for name in stack["workloads"].split(",") if name not in names]
        stack["workloads"] = [*names, *others] if isinstance(names, list) else ",".join([names, *others])
    stack["cluster"] = {}  # `dev` allows local accounts, which some rows need to be off
    found: dict[str, Any] = merged(stack, {key: value for key, value in row.items() if key != "workloads"})
    private = isinstance(network := found.get("network"), dict) and network.get("private")
    if private and "sharedClass" not in found["storage"]:
        found["storage"] = {"sharedFiles": "nfs"} | found["storage"]  # the notebook of `dev` needs shared files
    return found


def merged(base: Any, over: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    return base | {key: merged(base.get(key), value) for key, value in over.items()}


@pytest.mark.parametrize("case", ON_DEV.values(), ids=ON_DEV.keys())
def test_reports_the_same_problems_on_the_dev_stack(case: dict[str, Any]) -> None:
    """Other problems must follow from the row: a key of the row fixes them."""
    row = case["stack"]
    known = {name: each for name, each in WORKLOADS.items() if name != "sized" or name in str(row)} | workloads.find()
    found = {str(problem).partition("\n")[0]: problem for problem in problems(on_dev(row), known=known, secret=SECRET)}
    for expected in case["problems"][::2]:
        reported = [text for text in found if matches(text, expected)]
        assert reported, found
        for text in reported:
            del found[text]
    assert not [text for text, other in found.items() if not any(key in other.fix for key in {"vmSku", *row})]


def test_the_message_lists_all_problems() -> None:
    with pytest.raises(SettingsError) as caught:
        load({"vmSku": H100, "nodeCount": "2 nodes", "cluster": {"tier": "Gold"}})
    assert str(caught.value) == (
        "2 problems in the settings of stack dev; nothing was changed\n"
        "\n"
        "  cluster.tier is 'Gold'\n"
        "    allowed: Free, Standard, Premium\n"
        "    fix:     pulumi config set -s dev --path cluster.tier <value>\n"
        "\n"
        "  nodeCount is '2 nodes'\n"
        "    allowed: a whole number from 0 to 1000\n"
        "    fix:     pulumi config set -s dev nodeCount 2"
    )


def test_a_message_with_a_part_of_the_problems_mentions_the_rest() -> None:
    with pytest.raises(SettingsError) as caught:
        load({"vmSku": H100, "cluster": {f"unknown{number}": number for number in range(40)}})
    first, *_, last = str(caught.value).splitlines()
    assert first == "more than 25 problems in the settings of stack dev; nothing was changed"
    assert last == "  The next preview lists more."


def test_the_default_of_an_invalid_value_causes_no_problem() -> None:
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


def test_rejects_a_stack_name_that_is_too_long_for_the_cluster() -> None:
    (problem,) = problems({"vmSku": H100}, name="x" * 60)
    assert problem.fix == f"pulumi stack rename -s {'x' * 60} {'x' * 44}"


def test_the_loader_raises_a_run_error_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    pulumi.runtime.set_all_config(as_engine({"vmSku": H100, "nodeCount": "-5"}))
    monkeypatch.setattr(pulumi, "get_project", lambda: "ai-on-aks")
    monkeypatch.setattr(pulumi, "get_stack", lambda: "dev")
    with pytest.raises(pulumi.RunError, match="nodeCount is '-5'") as caught:
        loader.load(INVENTORY)
    assert caught.value.__suppress_context__
