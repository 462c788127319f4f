from __future__ import annotations

from typing import Any

import workloads
from config.rules.advice import warnings
from tests.support.settings import load, problems
from tests.support.sizes import H100

KNOWN = workloads.find()
INPUT: dict[str, Any] = {"containers": {"olmo-data": {}}}
OUTPUT: dict[str, Any] = {"containers": {"olmo-checkpoints": {"permissions": "racwdlmp"}}}
BOTH: dict[str, Any] = {"input": INPUT, "output": OUTPUT}
OLMO: dict[str, Any] = {"workloads": "olmo", "workloadOptions": {"olmo": {"prepare": False}}}


def refused(storage: dict[str, Any], **keys: Any) -> dict[str, str]:
    """Returns fixes by errors."""
    found = problems({"vmSku": H100, "storage": storage, **keys}, known=KNOWN)
    return {str(problem).partition("\n")[0]: problem.fix for problem in found}


def test_keys_of_a_missing_account_move_to_the_others() -> None:
    accounts = {"input": INPUT, "output": {**OUTPUT, "auth": "sas"}}
    assert refused({"auth": "identity", "accountName": "models", "accounts": accounts}) == {
        "storage.accountName applies to the account of storage.containers, which is not set": (
            "pulumi config rm --path storage.accountName"
        ),
        "storage.auth applies to the account of storage.containers, which is not set": (
            "pulumi config set --path storage.accounts.input.auth identity && pulumi config rm --path storage.auth"
        ),
    }


def test_keys_of_all_accounts_stay() -> None:
    assert load({"vmSku": H100, "storage": {"driver": "chart", "accounts": BOTH}}).storage.needs("chart")


def test_the_first_account_keeps_its_keys() -> None:
    found = load({"vmSku": H100, "storage": {"auth": "identity", **INPUT, "accounts": {"output": OUTPUT}}}).storage
    assert [(each.key, each.settings.auth) for each in found.made_accounts()] == [("", "identity"), ("output", "sas")]


def test_a_workload_uses_containers_of_several_accounts() -> None:
    placements = load({"vmSku": H100, "storage": {"accounts": BOTH}, **OLMO}, known=KNOWN).placements
    assert placements["olmo"].options.containers == ("olmo-data", "olmo-checkpoints")


def test_the_fix_of_a_container_is_in_its_account() -> None:
    careless = {"input": INPUT, "output": {"containers": {"olmo-checkpoints": {}}}}
    (fix,) = refused({"accounts": careless}, **OLMO).values()
    path = 'storage.accounts.output.containers["olmo-checkpoints"].permissions'
    assert fix == f"pulumi config set --path '{path}' racwdlmp"


def test_a_missing_container_goes_to_the_account_with_containers() -> None:
    (fix,) = refused({"accounts": {"output": OUTPUT}}, **OLMO).values()
    assert fix == "pulumi config set --path 'storage.accounts.output.containers[\"olmo-data\"].permissions' rl"


def test_copies_of_data_need_a_sas_of_their_account() -> None:
    found = refused({"accounts": {**BOTH, "input": {**INPUT, "auth": "identity"}}}, workloads="olmo")
    what = "storage.accounts.input.auth is identity, but workload olmo needs a SAS to copy its data"
    assert found[what] == "pulumi config set --path storage.accounts.input.auth <value>"


def test_the_rotation_of_a_sas_is_in_its_account() -> None:
    written = {"olmo-checkpoints": {"permissions": "racwdlmp", "sas": "user-delegation"}}
    output = {"containers": written, "rotation": "3"}
    by_identity = {**INPUT, "auth": "identity"}
    settings = load(
        {"vmSku": H100, "storage": {"accounts": {"input": by_identity, "output": output}}, **OLMO}, known=KNOWN
    )
    (text,) = warnings(settings)
    assert text.endswith("change storage.accounts.output.rotation before the SAS expires, for example to 4")
