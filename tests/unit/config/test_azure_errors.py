from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from config.rules.azure_errors import Place, entries, explain, explain_log

CSE = (
    "VM has reported a failure when processing extension 'vmssCSE' (publisher 'Microsoft.AKS' and type "
    "'Linux.AKSNode'). Error message: 'Enable failed: failed to execute command: command terminated with "
    'exit status={0} [stdout] {{"ExitCode": "{0}", "Output": "...", "Error": ""}}\'.'
)
TABLE = yaml.safe_load(Path(__file__).with_name("azure_errors.yaml").read_text("utf-8"))


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "autorest"])
@pytest.mark.parametrize("case", TABLE["errors"], ids=lambda case: case.get("code", "exit"))
def test_explains_an_error(case: dict[str, str], as_json: bool) -> None:
    code = case.get("code", "VMExtensionProvisioningError")
    message = case.get("message") or CSE.format(case["exit"])
    body = {"status": 400, "error": {"code": code, "message": message}}
    found = explain(json.dumps(body) if as_json else f'Status=400 Code="{code}" Message="{message}"')
    assert found
    assert case["meaning"] in found.meaning
    assert any(re.search(re.escape(case["fix"]).replace(r"\|", "|"), fix) for fix in found.fixes), found.fixes


def test_names_all_missing_tags() -> None:
    expressions = [{"expression": f"tags[{tag}]", "result": "False"} for tag in ("CostCenter", "Owner", "Owner")]
    found = explain(json.dumps({"code": "RequestDisallowedByPolicy", "evaluatedExpressions": expressions}))
    assert found
    assert [fix.split()[-2] for fix in found.fixes] == ["tags.CostCenter", "tags.Owner"]


def test_does_not_name_tags_of_the_stack() -> None:
    error = 'RequestDisallowedByPolicy {"expression":"tags[env]"}, {"expression":"tags.Owner"}'
    some, all_ = explain(error, Place(tags=("Env",))), explain(error, Place(tags=("env", "owner")))
    assert some
    assert all_
    assert [fix.split()[-2] for fix in some.fixes] == ["tags.Owner"]
    assert len(all_.fixes) == 2, "the policy does not allow their values"


@pytest.mark.parametrize("case", TABLE["reports"], ids=lambda case: case["message"][:60])
def test_explains_reports_of_other_tools(case: dict[str, str]) -> None:
    found = explain(case["message"])
    assert found
    assert case["meaning"] in found.meaning


def test_explains_each_error_of_a_log_once() -> None:
    node = 'Status=200 Code="VMExtensionProvisioningError" Message="'
    log = f'error: {node}{CSE.format(50)}"\nerror: {node}{CSE.format(84)}"\nerror: {node}{CSE.format(50)}"\n'
    assert [each.meaning.split()[0] for each in explain_log(log)] == ["Nodes", "AKS"]
    assert explain_log("nothing") == []
    assert [each.meaning.split()[0] for each in explain_log("ScopeLocked")] == ["A"]


LOCKED = "following scope(s) are locked: '/s/g'"
QUOTA_14 = "exceeding approved Total Regional Cores quota. (Minimum) New Limit Required: 14."
SDK = 'PUT https://x\nRESPONSE 409: 409 Conflict\nERROR CODE: {0}\n{{"error": {{"code": "{0}", "message": "{1}"}}}}\n'


@pytest.mark.parametrize(
    "log",
    [
        json.dumps(
            {"code": "A", "details": [{"code": "ScopeLocked", "message": LOCKED}, {"code": "B", "m": QUOTA_14}]}
        ),
        f"ERROR: (ScopeLocked) {LOCKED}\nCode: ScopeLocked\nERROR: (QuotaExceeded) {QUOTA_14}\nCode: QuotaExceeded\n",
        SDK.format("ScopeLocked", LOCKED) + SDK.format("QuotaExceeded", QUOTA_14),
    ],
)
def test_explains_all_errors_of_a_log_with_their_details(log: str) -> None:
    locked, quota = explain_log(log)
    assert "'/s/g/providers/Microsoft.Authorization/locks" in locked.fixes[0]
    assert "Total Regional Cores: 14 or more" in quota.fixes[0]


def test_does_not_explain_unknown_errors() -> None:
    assert explain('Status=400 Code="InvalidParameter" Message="exit status=50 of something else"') is None
    assert explain("") is None


def test_exit_codes_are_unique() -> None:
    codes = [code for entry in entries() for code in entry.exit]
    assert len(codes) == len(set(codes))


def test_every_entry_has_a_source_and_a_fix() -> None:
    assert all(entry.source.startswith("https://") and entry.fix for entry in entries())
