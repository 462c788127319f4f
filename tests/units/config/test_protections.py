"""Suggested fixes never drop, invert or widen a protection, and keep values, whatever name the user knows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.units.config.fix_words import GROUP, SPOT, by_hand, fix_of, moved, replaced_by_nothing

OFFICE = "198.51.100.8/29"


RANGES = "'cluster.authorizedIpRanges[0]'"


@pytest.mark.parametrize(
    ("keys", "fix"),
    [
        # the opposite, in Azure's words
        (
            {"cluster": {"disableLocalAccounts": True}},
            by_hand("cluster.localAccounts (its opposite)", "cluster.disableLocalAccounts"),
        ),
        (
            {"storage": {"publicNetworkAccess": "Disabled"}},
            by_hand("network.private (its opposite)", "storage.publicNetworkAccess"),
        ),
        ({"network": {"public": False}}, by_hand("network.private (its opposite)", "network.public")),
        ({"storage": {"unprotected": True}}, by_hand("storage.protect (its opposite)", "storage.unprotected")),
        (
            {"storage": {"allowSharedKeyAccess": False}},
            by_hand("storage.auth (its opposite)", "storage.allowSharedKeyAccess"),
        ),
        # the wrong section
        ({"cluster": {"private": True}}, moved("network.private", "true", "cluster.private")),
        ({"network": {"authorizedIpRanges": [OFFICE]}}, moved(RANGES, OFFICE, "network.authorizedIpRanges")),
        ({"storage": {"authorizedIpRanges": [OFFICE]}}, moved(RANGES, OFFICE, "storage.authorizedIpRanges")),
        (
            {"network": {"adminGroupObjectIds": [GROUP]}},
            moved("'cluster.adminGroupObjectIds[0]'", GROUP, "network.adminGroupObjectIds"),
        ),
        ({"storage": {"sas": "user-delegation"}}, by_hand("storage.containers.<name>.sas", "storage.sas")),
        ({"protect": True}, moved("storage.protect", "true", "protect")),
        ({"cluster": {"protect": True}}, by_hand("storage.protect", "cluster.protect")),
        ({"registry": {"protect": False}}, replaced_by_nothing("registry.protect")),
        (
            {"storage": {"accounts": {"input": {"protected": False, "protect": True}}}},
            by_hand("storage.accounts.input.protect", "storage.accounts.input.protected"),
        ),
        ({"lendingLimit": 0}, by_hand("teams.<name>.lendingLimit", "lendingLimit")),
        (
            {"operators": {"kueue": {"borrowingLimit": 0}}},
            by_hand("teams.<name>.borrowingLimit", "operators.kueue.borrowingLimit"),
        ),
        ({"maintenance": {"day": "Sunday"}}, by_hand("cluster.maintenanceWindow", "maintenance")),
        # names of Azure, Terraform and Kueue
        ({"cluster": {"privateCluster": True}}, by_hand("network.private", "cluster.privateCluster")),
        (
            {"cluster": {"apiServerAccessProfile": {"authorizedIPRanges": [OFFICE], "enablePrivateCluster": True}}},
            by_hand("cluster.authorizedIpRanges or network.private", "cluster.apiServerAccessProfile"),
        ),
        ({"storage": {"networkAcls": {"defaultAction": "Deny"}}}, by_hand("network.private", "storage.networkAcls")),
        ({"storage": {"lock": "CanNotDelete"}}, by_hand("storage.protect", "storage.lock")),
        ({"storage": {"prevent_destroy": True}}, moved("storage.protect", "true", "storage.prevent_destroy")),
        (
            {"storage": {"minimumTlsVersion": "TLS1_2"}},
            replaced_by_nothing("storage.minimumTlsVersion"),
        ),
        (
            {"operators": {"kueue": {"enabled": True}}, "teams": {"blue": {"nominalQuota": 4}}},
            moved("teams.blue.gpus", 4, "teams.blue.nominalQuota"),
        ),
        # a misspelt key beside the right one
        ({"storage": {"protected": True, "protect": False}}, by_hand("storage.protect", "storage.protected")),
        (
            {"cluster": {"localaccounts": False, "localAccounts": True}},
            by_hand("cluster.localAccounts", "cluster.localaccounts"),
        ),
        ({"cluster.private": True}, by_hand("network.private", "cluster.private")),
        (
            {"storage": {"authentication": "identity"}},
            "pulumi config set --path storage.auth identity && pulumi config rm --path storage.authentication",
        ),
        ({"cluster": {"admins": [GROUP]}}, moved("'cluster.adminGroupObjectIds[0]'", GROUP, "cluster.admins")),
        (
            {"cluster": {"authorizedIpRange": OFFICE}},
            f"pulumi config rm --path cluster.authorizedIpRange && pulumi config set --path {RANGES} {OFFICE}",
        ),
        (
            {"operators": {"kueue": {"enabled": True}}, "teams": {"blue": {"gpus": "eight"}}},
            "change teams.blue.gpus in the stack file to what is allowed",
        ),
        # values that do not fit
        (
            {"storage": {"containers": {"data": {"ays": True}}}},
            by_hand("storage.containers.data.days", "storage.containers.data.ays"),
        ),
        (
            {"storage": {"containers": {"data": {"days": "3d"}}}},
            "pulumi config set --path storage.containers.data.days 3",
        ),
        (
            {"storage": {"containers": {"data": {"days": "12h"}}}},
            "change storage.containers.data.days in the stack file to what is allowed",
        ),
        ({"pools": {"x": {**SPOT, "spotMaxPrice": "$4,50"}}}, "pulumi config set --path pools.x.spotMaxPrice 4.5"),
        (
            {"pools": {"x": {**SPOT, "spotMaxPrice": "cheap"}}},
            "change pools.x.spotMaxPrice in the stack file to what is allowed",
        ),
        (
            {"cluster": {"systemPool": {"taint": "CriticalAddonsOnly=true:NoSchedule"}}},
            "change cluster.systemPool.taint in the stack file to what is allowed",
        ),
        (
            {"network": {"outbound": "UserDefinedRouting"}},
            "set network.outbound to userDefinedRouting with the other settings that it needs",
        ),
        (
            {"network": {"outbound": ["userDefinedRouting"]}},
            "pulumi config set --path network.outbound userDefinedRouting",
        ),
        ({"network": {"outbound": "secret"}}, "change network.outbound in the stack file to what is allowed"),
        (
            {"cluster": {"localAccounts": True, "entra": {"enabled": False}}},
            "pulumi config set --path cluster.entra false",
        ),
        ({"storage": {"identity": True}}, by_hand("storage.auth", "storage.identity")),
        ({"storage": {"allowDelete": False}}, by_hand("storage.protect (its opposite)", "storage.allowDelete")),
        (
            {"operators": {"kueue": {"enabled": True}}, "teams": {"blue": {"gpus": 4, "maxBorrow": 0}}},
            moved("teams.blue.borrowingLimit", 0, "teams.blue.maxBorrow"),
        ),
        (
            {"operators": {"nodeHealth": {"enabled": "disabled"}}},
            "pulumi config set --path operators.nodeHealth.enabled false",
        ),
        # other namespaces
        ({"aks:authorizedIpRanges": [OFFICE]}, moved(RANGES, OFFICE, "aks:authorizedIpRanges")),
        ({"aks:private": True}, moved("network.private", "true", "aks:private")),
        ({"network:private": True}, moved("network.private", "true", "network:private")),
        (
            {"aks:disableLocalAccounts": True},
            by_hand("cluster.localAccounts (its opposite)", "aks:disableLocalAccounts"),
        ),
    ],
    ids=json.dumps,
)
def test_no_fix_weakens_a_protection(keys: dict[str, Any], fix: str) -> None:
    assert fix_of(keys) == fix
