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
UNNEEDED = "if you do not need it: no setting of this program has a similar name"


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
         "of this program has a similar name"),
        ({"operators": {"driverUpgrade": "when-idle"}}, "pulumi config set --path operators.driverUpgrades when-idle"
         " && pulumi config rm --path operators.driverUpgrade"),
        ({"storage": {"containers": {"data": {"dais": 9000}}}},
         "pulumi config set --path storage.containers.data.days 365"
         " && pulumi config rm --path storage.containers.data.dais"),
        ({"modelSize": "6b"}, "pulumi config set modelSize 6.7b"),
        ({"modelSize": "1300m"}, "pulumi config set modelSize 1.3b"),
        ({"modelSize": "7B"}, "pulumi config set modelSize 6.7b"),
        ({"modelSize": "2b"}, "change modelSize in the stack file to what is allowed"),
        ({"modelSize": "500m"}, "change modelSize in the stack file to what is allowed"),
        ({"workloads": "all"}, "change workloads in the stack file to what is allowed"),
        ({"tags": "CostCenter=4711 Owner=me"}, "pulumi config rm tags && pulumi config set --path tags.CostCenter 4711"
         " && pulumi config set --path tags.Owner me"),
        ({"options": {"metaseq": {"numNodes": 1}}},
         """pulumi config set workloadOptions '{"metaseq": {"numNodes": 1}}' && pulumi config rm options"""),
        ({"azureRegion": "westus"}, "pulumi config set location westus && pulumi config rm azureRegion"),
        ({"cluster": {"name": "prod1"}}, f"remove cluster.name {UNNEEDED}"),
        ({"storage": {"name": "mystore"}}, "set storage.accountName to what you need in the stack file, and remove "
         "storage.name"),
        ({"storage": {"location": "westus"}}, "set location to what you need in the stack file, and remove "
         "storage.location"),
        ({"storage": {"tier": "Hot"}}, f"remove storage.tier {UNNEEDED}"),
        ({"storage": {"count": 4}}, f"remove storage.count {UNNEEDED}"),
        ({"storage": {"retentionDays": 30}}, f"remove storage.retentionDays {UNNEEDED}"),
        ({"storage": {"ipRules": ["203.0.113.7"]}}, f"remove storage.ipRules {UNNEEDED}"),
        ({"storage": {"containers": {"keep": None}}},
         "write storage.containers.keep as a map in the stack file: keep: {...}"),
        ({"storage": {"accounts": {"input": "x"}}},
         "write storage.accounts.input as a map in the stack file: input: {...}"),
        ({"teams": {"blue": ""}}, "write teams.blue as a map in the stack file: blue: {...}"),
        ({"network": {"addressSpace": ["10.1.0.0/16"]}}, "pulumi config set --path network.addressSpace 10.1.0.0/16"),
        ({"network": {"addressSpace": "10.0.0.0"}}, "change network.addressSpace in the stack file to what is allowed"),
        ({"operators": {"gpuOperator": {"values": None}}}, "pulumi config rm --path operators.gpuOperator.values"),
        ({"operators": {"kueue": "on"}}, "pulumi config rm --path operators.kueue"
         " && pulumi config set --path operators.kueue.enabled true"),
        ({"operators": {"nodeHealth": "off"}}, "pulumi config rm --path operators.nodeHealth"
         " && pulumi config set --path operators.nodeHealth.enabled false"),
        ({"cluster": {"maintenanceWindow": {"day": "Saturday/Sunday"}}},
         "change cluster.maintenanceWindow.day in the stack file to what is allowed"),
        ({"cluster": {"maintenanceWindow": {"day": "sat"}}},
         "pulumi config set --path cluster.maintenanceWindow.day Saturday"),
        ({"storage": {"sku": "Standard_GRS"}}, "change storage.sku in the stack file to what is allowed"),
    ],
)  # fmt: skip
def test_no_fix_is_nonsense(keys: dict[str, Any], fix: str) -> None:
    stack = {"vmSku": H100, "workloads": "metaseq", "cluster": {}} | keys
    (found,) = fixes(stack, known=KNOWN).values()
    assert found == fix


@pytest.mark.parametrize(
    ("pool", "fix"),
    [
        ({"labels": {"team name": "red"}}, """pulumi config set --path 'pools.gpu.labels["team-name"]' red && pulumi \
config rm --path 'pools.gpu.labels["team name"]'"""),
        ({"taints": ["team=red"]}, "change pools.gpu.taints[0] in the stack file to what is allowed"),
        ({"enableAutoScaling": False}, "pulumi config rm --path pools.gpu.enableAutoScaling"),
        ({"autoscale": {"min": 4, "max": 1}}, "change pools.gpu.autoscale.max in the stack file to what is allowed"),
    ],
)  # fmt: skip
def test_no_fix_of_a_pool_loses_a_value(pool: dict[str, Any], fix: str) -> None:
    assert list(fixes({"pools": {"gpu": {"vmSku": H100, **pool}}}).values()) == [fix]


@pytest.mark.parametrize(
    ("users", "fix"),
    [
        ("a@x;b@x", "pulumi config rm --path teams.blue.users && pulumi config set --path 'teams.blue.users[0]' a@x"
         " && pulumi config set --path 'teams.blue.users[1]' b@x"),
        ("alice bob", "change teams.blue.users in the stack file to what is allowed"),
        (["*"], "change teams.blue.users[0] in the stack file to what is allowed"),
        (None, "pulumi config rm --path teams.blue.users"),
    ],
)  # fmt: skip
def test_users_are_one_by_one(users: object, fix: str) -> None:
    stack = {"vmSku": H100, "operators": {"kueue": {"enabled": True}}, "teams": {"blue": {"gpus": 8, "users": users}}}
    assert list(fixes(stack).values()) == [fix]


@pytest.mark.parametrize(
    ("key", "given", "meant"),
    [
        *(("startTime", "9:00", "09:00"), ("startTime", "14.30", "14:30"), ("startTime", "22h", "22:00")),
        *(("startTime", "22:00:00", "22:00"), ("startTime", "2:30 PM", ""), ("startTime", 1320, "")),
        *(("utcOffset", "+1", "+01:00"), ("utcOffset", "+0530", "+05:30"), ("utcOffset", 5, "")),
    ],
)
def test_a_time_in_another_form_is_read_where_it_is_sure(key: str, given: object, meant: str) -> None:
    path = f"cluster.maintenanceWindow.{key}"
    (fix,) = fixes({"vmSku": H100, "cluster": {"maintenanceWindow": {"day": "Saturday", key: given}}}).values()
    words = f"change {path} in the stack file to what is allowed"
    assert fix == (f"pulumi config set --path {path} {meant}" if meant else words)


def test_a_fix_sets_the_number_that_is_written_and_no_more_nodes() -> None:
    """They are too few for the workload, which says so once it is a number."""
    stack = {
        "vmSku": H100,
        "nodeCount": "1 node",
        "workloads": "training",
        "workloadOptions": {"training": {"numNodes": 8}},
    }
    assert fixes(stack) == {"nodeCount": "pulumi config set nodeCount 1"}


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
