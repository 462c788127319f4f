"""A fix is tried before it is offered: one that the rules would refuse gives way to one that they take."""

from __future__ import annotations

from typing import Any

import pytest

import workloads
from config.edits import Draft
from config.errors import Problem, SettingsError, remove_command, set_command
from config.privacy import Privacy
from config.trial import tried
from tests.settings import commands
from tests.settings.stacks import H100, WORKLOADS, as_engine, load

KNOWN = workloads.find()


def fixes(stack: dict[str, Any], **options: Any) -> dict[str, str]:
    """What mends a stack, by key."""
    with pytest.raises(SettingsError) as caught:
        load(stack, **options)
    return {".".join(map(str, problem.path)): problem.fix for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("keys", "fix"),
    [
        ({"cluster": {"resourceGroup": "/n code"}}, "pulumi config set --path cluster.resourceGroup n-code"),
        ({"cluster": {"resourceGroup": "- -"}}, "pulumi config set --path cluster.resourceGroup ai-on-aks-dev"),
        ({"location": "us east"}, "pulumi config set location eastus"),
        ({"location": "us-east-2"}, "pulumi config set location eastus2"),
        ({"location": "eastus3"}, "pulumi config set location eastus"),
        ({"location": "mars"}, "pulumi config rm location"),
        ({"azure-native:location": "mars"}, "pulumi config set location eastus"),
        ({"operators": {"drainOnUpgrade": True}}, "pulumi config rm --path operators.drainOnUpgrade"),
        ({"operators": {"driverUpgrade": "when-idle"}}, "pulumi config set --path operators.driverUpgrades when-idle"
         " && pulumi config rm --path operators.driverUpgrade"),
        ({"storage": {"containers": {"data": {"dais": 9000}}}}, "pulumi config rm --path storage.containers.data.dais"),
        ({"modelSize": "6b"}, "pulumi config set modelSize 6.7b"),
    ],
)  # fmt: skip
def test_no_fix_is_nonsense(keys: dict[str, Any], fix: str) -> None:
    stack = {"vmSku": H100, "workloads": "metaseq", "cluster": {}} | keys
    (found,) = fixes(stack, known=KNOWN).values()
    assert found == fix


def test_one_that_only_leads_to_the_next_problem_is_better_than_none() -> None:
    """Any number of nodes that is near is too few for the workload, which says so once it is a number."""
    stack = {
        "vmSku": H100,
        "nodeCount": "-3",
        "workloads": "training",
        "workloadOptions": {"training": {"numNodes": 8}},
    }
    assert fixes(stack) == {"nodeCount": "pulumi config set nodeCount 2"}


def test_where_nothing_mends_it_the_stack_file_is_named() -> None:
    problem = Problem(("vmSku",), "is cursed", "nothing", set_command(("vmSku",), H100))
    (found,) = tried([problem], {"vmSku": H100}, lambda keys: [problem], Privacy((), WORKLOADS))
    assert found.fix == "change vmSku in the stack file to what is allowed"


def test_more_than_a_message_tells_are_not_tried() -> None:
    paths = [("workloads", index) for index in range(25)]
    problems = [Problem(path, "is wrong", "a name", remove_command(path)) for path in paths]
    found = tried(problems, {}, lambda keys: pytest.fail("was tried"), Privacy((), WORKLOADS))
    assert [problem.path for problem in found] == paths[::-1]


def test_options_of_an_unknown_workload_are_moved_value_by_value() -> None:
    options = {"nccl_allreduce": {"numNodes": 2, "sharp": False}}
    stack = {"vmSku": H100, "workloads": "nccl-allreduce", "workloadOptions": options}
    (fix,) = fixes(stack).values()
    assert commands.mended(stack, fix)["workloadOptions"] == {"nccl-allreduce": {"numNodes": 2, "sharp": False}}


def test_many_of_them_are_moved_by_hand() -> None:
    options = {"nccl_allreduce": {"podOverrides": {"metadata": {"labels": {f"label{each}": "x" for each in range(9)}}}}}
    assert list(fixes({"vmSku": H100, "workloadOptions": options}).values()) == [
        "rename the key nccl_allreduce to nccl-allreduce under workloadOptions in the stack file, with all that stands "
        "below it"
    ]


EDITS = [
    *(
        set_command(("nodeCount",), 3),
        set_command(("cluster", "tier"), "Free"),
        set_command(("cluster", "entra"), False),
    ),
    *(set_command(("pools", "gpu", "taints", 0), "a=b:NoSchedule"), set_command(("new", "a", "b"), "01")),
    *(set_command(("cluster", "systemPool", "count"), "7"), set_command(("workloads", "a"), "x")),
    *(remove_command(("nodeCount",)), remove_command(("pools", "gpu", "taints", 0)), remove_command(("cluster", "x"))),
    *(remove_command(("cluster", "entra")), remove_command(("workloads", "a")), remove_command(("no", "such"))),
]


@pytest.mark.parametrize("fix", EDITS, ids=map(str, EDITS))
def test_edits_are_those_of_their_commands(fix: Any) -> None:
    """As they are read back from the text; tests/settings/test_fixes.py runs that with the real CLI."""
    pools = {"gpu": {"taints": ["x=y:NoExecute", "z"]}}
    stack = {"nodeCount": 2, "workloads": "a,b", "cluster": {"entra": True}, "pools": pools}
    draft = Draft({key.removeprefix("ai-on-aks:"): text for key, text in as_engine(stack).items()})
    draft.apply(fix)
    expected = as_engine(commands.mended(stack, str(fix)))
    assert draft.keys() == {key.removeprefix("ai-on-aks:"): text for key, text in expected.items()}


def test_below_a_value_the_cli_sets_nothing() -> None:
    draft = Draft({"cluster": '{"tier": "Free"}'})
    with pytest.raises(ValueError, match="name"):
        draft.apply(set_command(("cluster", "tier", "name"), "x"))
