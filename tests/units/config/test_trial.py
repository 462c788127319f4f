"""A fix is tried before it is offered: one that the rules would refuse gives way to one that they take."""

from __future__ import annotations

from typing import Any

import pytest

import workloads
from config.problems.errors import Problem, SettingsError
from config.problems.fixes import remove_command, set_command
from config.reading.edits import Draft, Keys
from config.reading.privacy import Privacy
from config.reading.trial import tried
from tests.support.settings import H100, INVENTORY, SECRET, as_engine, dev, load
from tests.units.config import commands

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
        ({"location": "mars"}, "change location in the stack file to what is allowed"),
        ({"azure-native:location": "mars"}, "change azure-native:location in the stack file to what is allowed"),
        ({"azure-native:location": "West US"}, "pulumi config set azure-native:location westus"),
        ({"cluster": {"teir": "free"}}, "pulumi config set --path cluster.tier Free"
         " && pulumi config rm --path cluster.teir"),
        ({"region": "us-west"}, "pulumi config set location westus && pulumi config rm region"),
        ({"azure-native:locaton": "mars"}, "set azure-native:location to what you need in the stack file, and remove "
         "azure-native:locaton"),
        ({"operators": {"drainOnUpgrade": True}}, "remove operators.drainOnUpgrade if you do not need it: no setting "
         "of this program replaces it"),
        ({"operators": {"driverUpgrade": "when-idle"}}, "pulumi config set --path operators.driverUpgrades when-idle"
         " && pulumi config rm --path operators.driverUpgrade"),
        ({"storage": {"containers": {"data": {"dais": 9000}}}},
         "pulumi config set --path storage.containers.data.days 365"
         " && pulumi config rm --path storage.containers.data.dais"),
        ({"modelSize": "6b"}, "pulumi config set modelSize 6.7b"),
    ],
)  # fmt: skip
def test_no_fix_is_nonsense(keys: dict[str, Any], fix: str) -> None:
    stack = {"vmSku": H100, "workloads": "metaseq", "cluster": {}} | keys
    (found,) = fixes(stack, known=KNOWN).values()
    assert found == fix


def test_what_a_fix_leaves_behind_is_mended_by_it_too() -> None:
    """Any number of nodes that is near is too few for the workload, which says so once it is a number."""
    stack = {
        "vmSku": H100,
        "nodeCount": "1 node",
        "workloads": "training",
        "workloadOptions": {"training": {"numNodes": 8}},
    }
    assert fixes(stack) == {"nodeCount": "pulumi config set nodeCount 8"}


def test_where_all_that_follows_cannot_be_mended_the_fix_stays_as_it_was() -> None:
    first, then = ("cluster", "tier"), ("nodeCount",)

    def look(keys: Keys) -> list[Problem]:
        if "Free" in keys["cluster"]:
            return [Problem(then, f"is {keys.get('nodeCount')}", "another", set_command(then, len(str(keys))))]
        return [Problem(first, "is wrong", "Free", set_command(first, "Free"))]

    keys = {"cluster": '{"tier": "x"}'}
    (found,) = tried(look(keys), keys, look, Privacy((), INVENTORY))
    assert found.fix == "pulumi config set --path cluster.tier Free"


def test_where_nothing_mends_it_the_stack_file_is_named() -> None:
    problem = Problem(("vmSku",), "is cursed", "nothing", set_command(("vmSku",), H100))
    (found,) = tried([problem], {"vmSku": H100}, lambda keys: [problem], Privacy((), INVENTORY))
    assert found.fix == "change vmSku in the stack file to what is allowed"


def test_more_than_a_message_tells_are_not_tried() -> None:
    paths = [("workloads", index) for index in range(25)]
    problems = [Problem(path, "is wrong", "a name", remove_command(path)) for path in paths]
    found = tried(problems, {}, lambda keys: pytest.fail("was tried"), Privacy((), INVENTORY))
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
    """As they are read back from the text; tests/units/config/test_fixes.py runs that with the real CLI."""
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


def test_what_a_broken_value_hid_is_told_beside_it_and_not_mended_in_silence() -> None:
    """No pool has a size that is known, so that nothing could be said of the workload's pool."""
    stack = {"vmSku": "Standard_ND96isr_H100", "workloads": "notebook", "workloadOptions": {"notebook": {"pool": "b"}}}
    assert fixes(stack) == {
        "vmSku": f"pulumi config set vmSku {H100}",
        "workloadOptions.notebook.pool": "pulumi config set --path workloadOptions.notebook.pool gpu",
    }


def test_a_mistyped_key_that_others_hide_is_told_only_if_its_fix_is_good() -> None:
    """`true` is no priority, which shows once the pool has its bounds and its size, and vmSku is out of its way."""
    found = fixes({**dev(), "pools": {"olmo-data": {"autoscale": {"riority": True}}}}, known=KNOWN, secret=SECRET)
    assert "pools.olmo-data.autoscale.max" in found
    assert not [fix for fix in found.values() if "autoscale.priority' true" in fix]
