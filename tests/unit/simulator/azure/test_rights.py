"""Which actions roles grant: Azure's own examples, and the program's reading of the same patterns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.rules.subscription import allows
from simulator.azure.types.role_assignment.allowed import grants

EXPORTS = "Microsoft.CostManagement/exports"
CONTRIBUTOR = ["Microsoft.Authorization/*/Delete", "Microsoft.Authorization/*/Write"]
PATTERNS = st.text("*aAb/.?", max_size=8)


@pytest.mark.parametrize(
    ("actions", "not_actions", "granted", "denied"),
    [
        # https://learn.microsoft.com/azure/role-based-access-control/role-definitions, "Actions" and "NotActions"
        (["*/read"], [], ["Microsoft.Compute/virtualMachines/read"], ["Microsoft.Compute/virtualMachines/write"]),
        (["Microsoft.Compute/*"], [], ["Microsoft.Compute/disks/read"], ["Microsoft.ComputeSchedule/x/read"]),
        (
            ["Microsoft.Network/*/read"],
            [],
            ["Microsoft.Network/virtualNetworks/subnets/read"],
            ["Microsoft.Network/read"],
        ),
        (["microsoft.web/sites/restart/Action"], [], ["Microsoft.Web/sites/restart/action"], []),
        (
            [f"{EXPORTS}/*"],
            [f"{EXPORTS}/delete"],
            [f"{EXPORTS}/{name}" for name in ("action", "read", "write", "run/action")],
            [f"{EXPORTS}/delete"],
        ),
        # https://learn.microsoft.com/azure/role-based-access-control/built-in-roles/privileged, Contributor
        (
            ["*"],
            CONTRIBUTOR,
            ["Microsoft.Authorization/roleAssignments/read", "Microsoft.Compute/disks/write"],
            ["Microsoft.Authorization/roleAssignments/write", "Microsoft.Authorization/locks/delete"],
        ),
    ],
)
def test_azures_examples(actions: list[str], not_actions: list[str], granted: list[str], denied: list[str]) -> None:
    assert [action for action in (*granted, *denied) if grants(action, actions, not_actions)] == granted


@given(PATTERNS, PATTERNS, st.text("aAb/.", max_size=6))
def test_the_program_reads_patterns_as_azure_does(pattern: str, excluded: str, action: str) -> None:
    role = {"actions": [pattern], "notActions": [excluded]}
    assert allows(role, action) == grants(action, [pattern], [excluded])
