from __future__ import annotations

from typing import Any

import pytest

from config.rules.subscription import (
    Objection,
    allows,
    condition_objections,
    provider_objections,
    refusal,
    rights_objections,
    size_objections,
)
from tests.support.case_files import case_table
from tests.support.lookups import size
from tests.support.sizes import H100, T4

SCOPE = "/subscriptions/0"
ASSIGN = "Microsoft.Authorization/roleAssignments/write"
ACCESS = "https://learn.microsoft.com/troubleshoot/azure/general/region-access-request-process"


def closed(kind: str = "Location", reason: str = "NotAvailableForSubscription", **more: Any) -> dict[str, Any]:
    where = {"values": ["eastus"], "restrictionInfo": {"locations": ["eastus"]}, **more}
    return size(H100, restrictions=[{"type": kind, "reasonCode": reason, **where}])


@case_table(__file__, "sizes")
def test_reports_sizes_that_are_not_available(sku: dict[str, Any], objected: str) -> None:
    there = size(**sku) if "name" in sku else closed(**sku)
    lines = [str(each) for each in size_objections({H100: "pool gpu"}, {"value": [size(T4), there]}, "eastus")]
    assert len(lines) == bool(objected)
    for line in lines:
        assert line.startswith(f"{H100} (pool gpu) is ")
        assert objected in line
        assert (f"    {ACCESS}    # how to ask for access" in line) is ("not available" in objected)
        assert f"az vm list-skus --resource-type virtualMachines --size {H100} --all --output table" in line


@pytest.mark.parametrize("answer", [{}, {"value": []}, {"value": [size(H100, "westus3")]}])
def test_warns_about_a_region_without_sizes(answer: dict[str, Any]) -> None:
    (warning,) = size_objections({H100: "pool gpu"}, answer, "eastus")
    assert not warning.stops


@case_table(__file__, "providers")
def test_reports_a_provider_that_is_not_registered(state: str | None, *, stops: bool) -> None:
    what = f"the resource provider Microsoft.Compute is not registered in this subscription: {state or 'NotRegistered'}"
    objection = Objection(what, ("az provider register --namespace Microsoft.Compute --wait",))
    assert list(provider_objections("Microsoft.Compute", {"registrationState": state})) == [objection] * stops


@case_table(__file__, "rights")
def test_reports_a_deployer_who_cannot_assign_roles(roles: list[dict[str, Any]], *, may: bool) -> None:
    assert any(allows(role, ASSIGN) for role in roles) is may
    found = list(rights_objections({"value": roles}, "someone", SCOPE))
    assert len(found) == (not may)
    for each in found:
        (step,) = each.steps
        assert step.startswith("az role assignment create --role 'User Access Administrator' --assignee someone ")
        assert f"--scope {SCOPE} " in step


OWNER, RBAC_ADMINISTRATOR = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635", "f58310d9-a9f6-439a-9e8d-f62e7b41a168"
READS = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
PULL, NETWORK = "7f951dda-4ed3-4680-a7ca-43fe172d538d", "4d97b98b-1d4f-4787-a291-c67834d212e7"
GIVEN = {PULL: "AcrPull", NETWORK: "Network Contributor"}
BOTH = f"... GuidEquals {{{', '.join(GIVEN).upper()}}}"
ALL_BUT = "... ForAnyOfAllValues:GuidNotEquals"


def assignment(role: str, condition: str | None = None) -> dict[str, Any]:
    return {"properties": {"roleDefinitionId": f"{SCOPE}/providers/x/roleDefinitions/{role}", "condition": condition}}


@case_table(
    __file__, "conditions", owner=OWNER, rbac=RBAC_ADMINISTRATOR, pull=PULL, reads=READS, both=BOTH, all_but=ALL_BUT
)
def test_warns_about_a_condition_on_role_assignments(held: list[dict[str, str]], lacking: str) -> None:
    found = list(condition_objections({"value": [assignment(**each) for each in held]}, GIVEN))
    assert [each.what.rpartition(" excludes ")[2] for each in found] == ([lacking] if lacking else [])
    assert not any(each.stops for each in found)


def test_the_refusal_has_all_errors_and_no_warning() -> None:
    found = [Objection("a", ("fix a",)), Objection("b", stops=False), Objection("c", ("fix c", "or d"))]
    assert refusal(found).splitlines() == [
        "a",
        "    fix a",
        "c",
        "    fix c",
        "    or d",
        "Nothing was changed. Do this, and then `pulumi up` again.",
    ]
    assert refusal([Objection("b", stops=False)]) == ""
